/* What an inference engine does with a tokenizer: load it, encode a prompt, print tokens as they
 * come.
 *
 *     engine TOKENIZER [PROMPT]        prints the text that the "model" generates
 *     engine --ids TOKENIZER [PROMPT]  prints the ids of the prompt
 *
 * TOKENIZER is a native file or a tokenizer.json. Without PROMPT, it is read from the standard
 * input. The stand-in for a model says the prompt again and then ends the text.
 *
 *     cc engine.c $(pkg-config --cflags --libs bytepair) -o engine
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytepair.h"

/* Ends the program with the message of a failed call. */
static void check(bytepair_code code, const bytepair_error *error) {
    if (code != BYTEPAIR_CODE_OK) {
        fprintf(stderr, "error %d: %s\n", (int)code, error->message);
        exit(1);
    }
}

/* All of a file, which may have zero bytes; the caller frees it. */
static char *read_all(FILE *file, size_t *length) {
    size_t capacity = 1 << 16, read;
    char *text = malloc(capacity);
    *length = 0;
    while (text && (read = fread(text + *length, 1, capacity - *length, file)) > 0) {
        *length += read;
        if (*length == capacity) {
            char *larger = realloc(text, capacity *= 2);
            if (!larger) free(text);
            text = larger;
        }
    }
    if (!text) {
        fputs("out of memory\n", stderr);
        exit(1);
    }
    return text;
}

/* Encodes the prompt as the text of a user: special tokens in it are ordinary text. If the
 * vocabulary has a token that begins a text, the prompt begins with it. */
static bytepair_ids encode(const bytepair_tokenizer *tokenizer, const char *prompt, size_t length) {
    bytepair_error error;
    bytepair_ids ids = {0};
    bytepair_options *options;
    uint32_t begin = bytepair_role(tokenizer, BYTEPAIR_ROLE_BOS);
    check(bytepair_options_new(tokenizer, BYTEPAIR_SPECIAL_TEXT, NULL, 0, begin, BYTEPAIR_NO_ID,
                               false, &options, &error), &error);
    check(bytepair_encode_append(tokenizer, prompt, length, options, &ids, &error), &error);
    bytepair_options_free(options);
    return ids;
}

/* The stand-in for a model: the id after `position` ids. */
static uint32_t next_id(const bytepair_ids *prompt, size_t position, uint32_t end) {
    return position < prompt->length ? prompt->data[position] : end;
}

/* Prints the text of each id as soon as its characters are complete. */
static void generate(const bytepair_tokenizer *tokenizer, const bytepair_ids *prompt) {
    bytepair_error error;
    bytepair_bytes text = {0};
    bytepair_decoder *decoder;
    uint32_t begin = bytepair_role(tokenizer, BYTEPAIR_ROLE_BOS);
    uint32_t end = bytepair_role(tokenizer, BYTEPAIR_ROLE_EOS);
    size_t start = begin == BYTEPAIR_NO_ID ? 0 : 1;
    check(bytepair_decoder_new(tokenizer, &decoder, &error), &error);
    for (size_t position = start;; position++) {
        uint32_t id = next_id(prompt, position, end);
        if (id == end || id == BYTEPAIR_NO_ID) break;
        check(bytepair_decoder_push(decoder, id, &text, &error), &error);
        fwrite(text.data, 1, text.length, stdout);
        fflush(stdout);
        text.length = 0;
    }
    check(bytepair_decoder_flush(decoder, &text, &error), &error);
    fwrite(text.data, 1, text.length, stdout);
    bytepair_bytes_free(&text);
    bytepair_decoder_free(decoder);
}

int main(int argc, char **argv) {
    int only_ids = argc > 1 && strcmp(argv[1], "--ids") == 0;
    char **arguments = argv + 1 + only_ids;
    int count = argc - 1 - only_ids;
    if (count < 1 || count > 2) {
        fprintf(stderr, "usage: %s [--ids] TOKENIZER [PROMPT]\n", argv[0]);
        return 2;
    }

    bytepair_error error;
    bytepair_tokenizer *tokenizer;
    check(bytepair_load(arguments[0], &tokenizer, &error), &error);

    size_t length = count == 2 ? strlen(arguments[1]) : 0;
    char *input = count == 2 ? NULL : read_all(stdin, &length);
    bytepair_ids ids = encode(tokenizer, input ? input : arguments[1], length);
    free(input);

    if (only_ids) {
        for (size_t i = 0; i < ids.length; i++) printf("%u\n", (unsigned)ids.data[i]);
    } else {
        generate(tokenizer, &ids);
    }
    bytepair_ids_free(&ids);
    bytepair_tokenizer_free(tokenizer);
    return 0;
}
