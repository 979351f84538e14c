"""An evaluation in, one page of HTML out: its tables and pictures, to look at and to send.

    >>> import bytepair
    >>> tok = bytepair.train(bytepair.sample.paths(), vocab_size=1000)
    >>> page = bytepair.report.to_html(bytepair.evaluate.measure(tok, against=[]))
    >>> page.startswith("<!doctype html>"), "<script" in page
    (True, False)

The page is one file without scripts that loads nothing, so it can be kept, printed and mailed. It
is light or dark as the reader's system is.
"""

from bytepair.report.page import save, save_sizes_plot, sizes_plot, to_html

__all__ = ["save", "save_sizes_plot", "sizes_plot", "to_html"]
