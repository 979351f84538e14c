# %% split_words
def split_words(text):
    """Split a text into words, numbers, signs and white space."""
    pretokens, start = [], 0
    while start < len(text):
        word = start
        if text[start] == " " and start + 1 < len(text) and kind(text[start + 1]) != "space":
            word = start + 1
        end = run_end(text, word, kind(text[word]))
        pretokens.append(text[start:end])
        start = end
    return pretokens


# %% word_pattern
def word_pattern():
    """Return the regular expression that splits as `split_words` does."""
    return r" ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+"


# %% split_gpt4
def contraction_end(text, start):
    """Return the end of `'s`, `'ll` and the like, or `start`."""
    if text[start] == "'":
        for length in (2, 1):
            ending = text[start + 1 : start + 1 + length].lower()
            if ending in ("ll", "ve", "re", "s", "d", "m", "t"):
                return start + 1 + length
    return start


def word_end(text, start):
    """Return the end of a run of letters, with a character before it, or `start`."""
    first = text[start]
    letters = start + (kind(first) in ("space", "other") and first not in "\r\n")
    end = run_end(text, letters, "letter")
    return end if end > letters else start


def number_end(text, start):
    """Return the end of one or two characters of a number, or `start`."""
    return min(run_end(text, start, "number"), start + 2)


def signs_end(text, start):
    """Return the end of a run of signs, with a space before and line breaks after, or `start`."""
    signs = start + (text[start] == " ")
    end = run_end(text, signs, "other")
    if end == signs:
        return start
    while end < len(text) and text[end] in "\r\n":
        end += 1
    return end


def space_end(text, start):
    """Return the end of the white space that is one pretoken."""
    end = run_end(text, start, "space")
    last_break = max(text.rfind("\r", start, end), text.rfind("\n", start, end))
    if last_break >= 0:
        return last_break + 1
    is_before_word = end < len(text)
    return end - 1 if is_before_word and end - start > 1 else end


def split_gpt4(text):
    """Split a text as the pattern of nanochat does."""
    alternatives = (contraction_end, word_end, number_end, signs_end, space_end)
    pretokens, start = [], 0
    while start < len(text):
        ends = (find_end(text, start) for find_end in alternatives)
        end = next(end for end in ends if end > start)
        pretokens.append(text[start:end])
        start = end
    return pretokens


# %% count_pretokens
def count_pretokens(texts, pattern):
    """Count the pretokens of many texts."""
    counts = {}
    for text in texts:
        for match in regex.findall(pattern, text):
            pretoken = match.encode()
            counts[pretoken] = counts.get(pretoken, 0) + 1
    return counts
