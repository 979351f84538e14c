"""Solutions of lesson 14."""


# %% gini
def gini(numbers):
    """How unequal numbers are: 0 if all are equal, nearly 1 if one has everything."""
    count, mean = len(numbers), sum(numbers) / len(numbers)
    differences = sum(abs(a - b) for a in numbers for b in numbers)
    return differences / count**2 / (2 * mean)


# %% crosses
def crosses(token):
    """Whether a token has something other than white space on both sides of a space."""
    return b" " in token.strip()
