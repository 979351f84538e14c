"""Solutions of lesson 13."""


# %% share_of_embeddings
def share_of_embeddings(size, width, layers):
    """Which part of the parameters of a transformer its two tables are, from 0 to 1."""
    tables, rest = 2 * size * width, 12 * layers * width**2
    return tables / (tables + rest)


# %% bits_per_byte
def bits_per_byte(losses, targets, lengths):
    """The bits that a model needs for each byte of the text; special tokens do not count."""
    sizes = lengths[targets]
    return losses[sizes > 0].sum() / np.log(2) / sizes.sum()
