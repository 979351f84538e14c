"""Serves a page that shows tokens in the browser: `bytepair explore`.

    >>> import bytepair
    >>> tok = bytepair.train(bytepair.sample.paths(), vocab_size=1000)
    >>> with bytepair.explore.Server({"mine": tok}) as server:
    ...     server.url.startswith("http://127.0.0.1:")
    True

The page asks this machine and no other. The server listens on loopback unless told otherwise,
answers only to its own name (so that no foreign page can reach it by a name of its own), and keeps
nothing. What people type is text on the page and never HTML. A page of one text needs no server:

    >>> bytepair.explore.to_html({"mine": tok}, "a text to send").startswith("<!doctype html>")
    True

The files: `answers` (what the page can ask; the compiled module answers; the page as one file),
`server` (HTTP around the answers), `page/` (HTML, style and scripts, as they are served),
`offline/` and `alone/` (what replaces the server in a file of one text, and in one with all views),
`wasm/` (the module for browsers, if `make wasm` built it).
"""

from bytepair.explore.answers import PUBLISHED, Answers, on_this_machine, to_html
from bytepair.explore.server import Server

__all__ = ["PUBLISHED", "Answers", "Server", "on_this_machine", "to_html"]
