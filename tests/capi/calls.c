/* Each call of bytepair.h, with what it gives and how it fails.
 *
 *     calls FOLDER
 *
 * FOLDER has tokenizer.bytepair, tokenizer.json and vocab.tiktoken of the tokenizer that
 * tests/test_capi.py trains: the bytes, "he" (256), "ll" (257), "llo" (258), "hello" (259), and the
 * special tokens <s> (260), </s> (261), <|im_end|> (262).
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytepair.h"
#include "check.h"

#define OK(call) CHECK((call) == BYTEPAIR_CODE_OK)
/* A call that fails with a code and with a message that contains a text. */
#define FAILS(expected, text, call)                                                        \
    do {                                                                                   \
        CHECK((call) == (expected));                                                       \
        CHECK(error.code == (expected));                                                   \
        if (!strstr(error.message, text)) fprintf(stderr, "%s\n", error.message);          \
        CHECK(strstr(error.message, text));                                                \
    } while (0)

#define TO_ZERO BYTEPAIR_ZERO_TERMINATED
#define ARGUMENT BYTEPAIR_CODE_ARGUMENT

static bytepair_error error;
static char place[4096];

static const char *in_folder(const char *folder, const char *name) {
    CHECK(snprintf(place, sizeof place, "%s/%s", folder, name) < (int)sizeof place);
    return place;
}

static bytepair_tokenizer *load(const char *folder, const char *name) {
    bytepair_tokenizer *tokenizer;
    OK(bytepair_load(in_folder(folder, name), &tokenizer, &error));
    return tokenizer;
}

static unsigned char *read_file(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    CHECK(file && fseek(file, 0, SEEK_END) == 0);
    *length = (size_t)ftell(file);
    rewind(file);
    unsigned char *bytes = malloc(*length);
    CHECK(bytes && fread(bytes, 1, *length, file) == *length);
    fclose(file);
    return bytes;
}

/* Whether a text has these ids. */
static int has_ids(const bytepair_tokenizer *tokenizer, const char *text,
                   const bytepair_options *options, size_t count, const uint32_t *expected) {
    uint32_t ids[64];
    size_t found;
    OK(bytepair_encode(tokenizer, text, TO_ZERO, options, ids, 64, &found, &error));
    return found == count && memcmp(ids, expected, count * sizeof *ids) == 0;
}

static void loading(const char *folder) {
    const char *names[] = {"tokenizer.bytepair", "tokenizer.json"};
    bytepair_tokenizer *tokenizer;
    size_t length;
    for (int i = 0; i < 2; i++) {
        tokenizer = load(folder, names[i]);
        CHECK(has_ids(tokenizer, "hello", NULL, 1, (uint32_t[]){259}));
        bytepair_tokenizer_free(tokenizer);
        unsigned char *bytes = read_file(place, &length);
        OK(bytepair_load_bytes(bytes, length, &tokenizer, &error));
        CHECK(has_ids(tokenizer, "hello", NULL, 1, (uint32_t[]){259}));
        bytepair_tokenizer_free(tokenizer);
        bytes[length / 2] ^= 0x55;
        bytes[length - 1] = 0;
        CHECK(bytepair_load_bytes(bytes, length, &tokenizer, &error) == BYTEPAIR_CODE_FORMAT);
        CHECK(strlen(error.message) > 10);
        free(bytes);
    }
    FAILS(BYTEPAIR_CODE_FILE, "cannot be read", bytepair_load("no such file", &tokenizer, &error));
    FAILS(BYTEPAIR_CODE_FORMAT, "empty", bytepair_load_bytes(NULL, 0, &tokenizer, &error));
    FAILS(ARGUMENT, "path is NULL", bytepair_load(NULL, &tokenizer, &error));
    FAILS(ARGUMENT, "tokenizer is NULL", bytepair_load(in_folder(folder, "tokenizer.json"), NULL, &error));
    FAILS(ARGUMENT, "data is NULL", bytepair_load_bytes(NULL, 7, &tokenizer, &error));
    CHECK(bytepair_load("no such file", &tokenizer, NULL) == BYTEPAIR_CODE_FILE);
    bytepair_tokenizer_free(NULL);
}

static void ranks(const char *folder) {
    bytepair_tokenizer *tokenizer;
    bytepair_text names[] = {{"<s>", 3}, {"</s>", TO_ZERO}};
    uint32_t ids[] = {260, 261};
    const char *path = in_folder(folder, "vocab.tiktoken");
    OK(bytepair_load_ranks(path, "gpt4", names, ids, 2, &tokenizer, &error));
    CHECK(has_ids(tokenizer, "hello", NULL, 1, (uint32_t[]){259}));
    CHECK(bytepair_special_count(tokenizer) == 2 && bytepair_vocab_size(tokenizer) == 262);
    CHECK(bytepair_is_lossless(tokenizer));
    bytepair_tokenizer_free(tokenizer);
    FAILS(ARGUMENT, "bytepair_load_ranks", bytepair_load(path, &tokenizer, &error));
    FAILS(BYTEPAIR_CODE_PATTERN, "gpt5", bytepair_load_ranks(path, "gpt5", NULL, NULL, 0, &tokenizer, &error));
    FAILS(BYTEPAIR_CODE_PATTERN, "not valid", bytepair_load_ranks(path, "(", NULL, NULL, 0, &tokenizer, &error));
    FAILS(BYTEPAIR_CODE_VOCABULARY, "id 7", bytepair_load_ranks(path, "gpt4", names, (uint32_t[]){259, 7}, 2, &tokenizer, &error));

    size_t length;
    unsigned char *bytes = read_file(path, &length);
    OK(bytepair_load_ranks_bytes(bytes, length, "gpt4", NULL, NULL, 0, &tokenizer, &error));
    CHECK(bytepair_vocab_size(tokenizer) == 260);
    bytepair_tokenizer_free(tokenizer);
    FAILS(BYTEPAIR_CODE_FORMAT, "line", bytepair_load_ranks_bytes(bytes, 5, "gpt4", NULL, NULL, 0, &tokenizer, &error));
    free(bytes);
}

static void vocabulary(const bytepair_tokenizer *tokenizer) {
    const char *data;
    size_t length;
    uint32_t id;
    CHECK(bytepair_vocab_size(tokenizer) == 263);
    OK(bytepair_token_bytes(tokenizer, 259, &data, &length, &error));
    CHECK(length == 5 && memcmp(data, "hello", 5) == 0);
    OK(bytepair_token_bytes(tokenizer, 262, &data, &length, &error));
    CHECK(length == 10 && memcmp(data, "<|im_end|>", 10) == 0);
    FAILS(BYTEPAIR_CODE_UNKNOWN_ID, "263", bytepair_token_bytes(tokenizer, 263, &data, &length, &error));
    CHECK(bytepair_token_id(tokenizer, "he", 2) == 256);
    CHECK(bytepair_token_id(tokenizer, "hello!", 5) == 259);
    CHECK(bytepair_token_id(tokenizer, "<s>", TO_ZERO) == BYTEPAIR_NO_ID);
    CHECK(bytepair_token_id(tokenizer, NULL, 1) == BYTEPAIR_NO_ID);

    CHECK(bytepair_special_count(tokenizer) == 3);
    OK(bytepair_special_token(tokenizer, 1, &data, &length, &id, &error));
    CHECK(id == 261 && length == 4 && memcmp(data, "</s>", 4) == 0);
    FAILS(ARGUMENT, "index 3 is not below 3", bytepair_special_token(tokenizer, 3, &data, &length, &id, &error));
    OK(bytepair_special_id(tokenizer, "<s>", TO_ZERO, &id, &error));
    CHECK(id == 260);
    FAILS(BYTEPAIR_CODE_SPECIAL_TOKEN, "it has <s> </s>", bytepair_special_id(tokenizer, "<t>", 3, &id, &error));
    FAILS(ARGUMENT, "id is NULL", bytepair_special_id(tokenizer, "<s>", 3, NULL, &error));

    CHECK(bytepair_role(tokenizer, BYTEPAIR_ROLE_BOS) == 260);
    CHECK(bytepair_role(tokenizer, BYTEPAIR_ROLE_EOS) == 261);
    CHECK(bytepair_role(tokenizer, BYTEPAIR_ROLE_PAD) == BYTEPAIR_NO_ID);
    CHECK(bytepair_role(tokenizer, BYTEPAIR_ROLE_END_OF_TURN) == 262);
    CHECK(bytepair_role(tokenizer, 99) == BYTEPAIR_NO_ID && bytepair_role(NULL, 0) == BYTEPAIR_NO_ID);
    CHECK(!bytepair_is_lossless(NULL) && bytepair_vocab_size(NULL) == 0 && bytepair_special_count(NULL) == 0);
}

static bytepair_options *prepare(const bytepair_tokenizer *tokenizer, uint32_t special,
                                 const bytepair_text *names, size_t count) {
    bytepair_options *options;
    OK(bytepair_options_new(tokenizer, special, names, count, 260, 261, false, &options, &error));
    return options;
}

static void encoding(const bytepair_tokenizer *tokenizer, const bytepair_tokenizer *other) {
    bytepair_options *options;
    bytepair_text names[] = {{"<s>", 3}};
    const char *text = "<s>he</s>";
    uint32_t plain[] = {60, 115, 62, 256, 60, 47, 115, 62};
    CHECK(has_ids(tokenizer, text, NULL, 8, plain));
    CHECK(has_ids(tokenizer, "", NULL, 0, plain));

    options = prepare(tokenizer, BYTEPAIR_SPECIAL_TEXT, NULL, 0);
    CHECK(has_ids(tokenizer, "he", options, 3, (uint32_t[]){260, 256, 261}));
    size_t count;
    OK(bytepair_count(tokenizer, "hello", 2, options, &count, &error));
    CHECK(count == 3);
    FAILS(ARGUMENT, "another tokenizer", bytepair_count(other, "he", 2, options, &count, &error));
    bytepair_options_free(options);
    options = prepare(tokenizer, BYTEPAIR_SPECIAL_ALL, NULL, 0);
    CHECK(has_ids(tokenizer, text, options, 5, (uint32_t[]){260, 260, 256, 261, 261}));
    bytepair_options_free(options);
    options = prepare(tokenizer, BYTEPAIR_SPECIAL_ONLY, names, 1);
    CHECK(has_ids(tokenizer, "<s>he<", options, 5, (uint32_t[]){260, 260, 256, 60, 261}));
    bytepair_options_free(options);
    for (uint32_t special = BYTEPAIR_SPECIAL_NONE; special <= BYTEPAIR_SPECIAL_MESSAGE; special++) {
        options = prepare(tokenizer, special, NULL, 0);
        CHECK(has_ids(tokenizer, "<s>", options, 5, (uint32_t[]){260, 60, 115, 62, 261}));
        bytepair_options_free(options);
    }
    options = prepare(tokenizer, BYTEPAIR_SPECIAL_ERROR, NULL, 0);
    FAILS(BYTEPAIR_CODE_SPECIAL_TOKEN, "at byte 2", bytepair_count(tokenizer, "ab<s>", 5, options, &count, &error));
    bytepair_options_free(options);
    bytepair_options_free(NULL);

    uint32_t none = BYTEPAIR_NO_ID;
    FAILS(ARGUMENT, "special is 6", bytepair_options_new(tokenizer, 6, NULL, 0, none, none, false, &options, &error));
    FAILS(ARGUMENT, "names are for", bytepair_options_new(tokenizer, 0, names, 1, none, none, false, &options, &error));
    FAILS(ARGUMENT, "names is NULL", bytepair_options_new(tokenizer, 2, NULL, 1, none, none, false, &options, &error));
    FAILS(BYTEPAIR_CODE_UNKNOWN_ID, "id 263", bytepair_options_new(tokenizer, 0, NULL, 0, none, 263, false, &options, &error));
    FAILS(ARGUMENT, "length is NULL", bytepair_encode(tokenizer, "a", 1, NULL, NULL, 0, NULL, &error));
    FAILS(ARGUMENT, "the buffer is NULL", bytepair_encode(tokenizer, "a", 1, NULL, NULL, 1, &count, &error));
    FAILS(BYTEPAIR_CODE_TOO_SMALL, "room for 0", bytepair_encode(tokenizer, "ab", 2, NULL, NULL, 0, &count, &error));
    CHECK(count == 2);
    FAILS(BYTEPAIR_CODE_TEXT_NOT_UTF8, "at byte 1", bytepair_count(tokenizer, "a\xff", 2, NULL, &count, &error));
    FAILS(ARGUMENT, "text is NULL", bytepair_count(tokenizer, NULL, 1, NULL, &count, &error));
    FAILS(ARGUMENT, "larger than any memory", bytepair_count(tokenizer, "a", (size_t)-2, NULL, &count, &error));
    FAILS(ARGUMENT, "tokenizer is NULL", bytepair_count(NULL, "a", 1, NULL, &count, &error));
    OK(bytepair_count(tokenizer, "a\0b", 3, NULL, &count, &error));
    CHECK(count == 3);
}

static void growing(const bytepair_tokenizer *tokenizer) {
    bytepair_ids ids = {0};
    OK(bytepair_encode_append(tokenizer, "hello", 5, NULL, &ids, &error));
    OK(bytepair_encode_append(tokenizer, "he", 2, NULL, &ids, &error));
    CHECK(ids.length == 2 && ids.data[0] == 259 && ids.data[1] == 256);
    FAILS(BYTEPAIR_CODE_TEXT_NOT_UTF8, "byte 0", bytepair_encode_append(tokenizer, "\xff", 1, NULL, &ids, &error));
    CHECK(ids.length == 2 && ids.data[1] == 256);
    uint32_t *memory = ids.data;
    ids.length = 0;
    OK(bytepair_encode_append(tokenizer, "ll", 2, NULL, &ids, &error));
    CHECK(ids.length == 1 && ids.data == memory && ids.data[0] == 257);
    bytepair_ids_free(&ids);
    CHECK(!ids.data && !ids.length && !ids.capacity);
    bytepair_ids_free(&ids);
    bytepair_ids_free(NULL);
    bytepair_ids broken = {NULL, 3, 5};
    FAILS(ARGUMENT, "not as the library left it", bytepair_encode_append(tokenizer, "a", 1, NULL, &broken, &error));
    FAILS(ARGUMENT, "ids is NULL", bytepair_encode_append(tokenizer, "a", 1, NULL, NULL, &error));
}

static void truncating(const bytepair_tokenizer *tokenizer) {
    const char *text = "hello h\xc3\xa9", *kept; /* hello, " ", h, and two bytes */
    size_t length;
    OK(bytepair_truncate(tokenizer, text, TO_ZERO, 4, false, &kept, &length, &error));
    CHECK(kept == text && length == 7);
    OK(bytepair_truncate(tokenizer, text, TO_ZERO, 2, true, &kept, &length, &error));
    CHECK(kept == text + 7 && length == 2);
    OK(bytepair_truncate(tokenizer, text, TO_ZERO, 0, false, &kept, &length, &error));
    CHECK(length == 0);
    OK(bytepair_truncate(tokenizer, text, TO_ZERO, 99, true, &kept, &length, &error));
    CHECK(kept == text && length == 9);
}

static void decoding(const bytepair_tokenizer *tokenizer) {
    uint32_t ids[] = {259, 0xC3, 0xA9, 260}, unknown[] = {65, 263};
    char bytes[10] = {0};
    size_t length;
    OK(bytepair_decode(tokenizer, ids, 4, bytes, 10, &length, &error));
    CHECK(length == 10 && memcmp(bytes, "hello\xc3\xa9<s>", 10) == 0);
    FAILS(BYTEPAIR_CODE_TOO_SMALL, "has 10 values", bytepair_decode(tokenizer, ids, 4, bytes, 9, &length, &error));
    FAILS(BYTEPAIR_CODE_UNKNOWN_ID, "263", bytepair_decode(tokenizer, unknown, 2, bytes, 9, &length, &error));

    bytepair_bytes text = {0};
    FAILS(BYTEPAIR_CODE_UNKNOWN_ID, "263", bytepair_decode_append(tokenizer, unknown, 2, &text, &error));
    OK(bytepair_decode_append(tokenizer, ids, 0, &text, &error));
    CHECK(text.length == 0);
    bytepair_decoder *decoder;
    OK(bytepair_decoder_new(tokenizer, &decoder, &error));
    OK(bytepair_decoder_push(decoder, 259, &text, &error));
    OK(bytepair_decoder_push(decoder, 0xC3, &text, &error));
    CHECK(text.length == 5);
    FAILS(BYTEPAIR_CODE_UNKNOWN_ID, "263", bytepair_decoder_push(decoder, 263, &text, &error));
    FAILS(ARGUMENT, "bytes is NULL", bytepair_decoder_push(decoder, 0xA9, NULL, &error));
    OK(bytepair_decoder_push(decoder, 0xA9, &text, &error));
    CHECK(text.length == 7 && memcmp(text.data, "hello\xc3\xa9", 7) == 0);
    OK(bytepair_decoder_flush(decoder, &text, &error));
    CHECK(text.length == 7);
    OK(bytepair_decoder_push(decoder, 0xE2, &text, &error));
    OK(bytepair_decoder_flush(decoder, &text, &error));
    CHECK(text.length == 10 && memcmp(text.data + 7, "\xef\xbf\xbd", 3) == 0);
    CHECK(bytepair_decoder_stopped(decoder) == SIZE_MAX && bytepair_decoder_stopped(NULL) == SIZE_MAX);
    const bytepair_text stops[] = {{"?!", 2}, {"!", 1}, {"", 0}};
    FAILS(ARGUMENT, "stop string", bytepair_decoder_stop(decoder, stops, 3, false, &error));
    OK(bytepair_decoder_stop(decoder, stops, 2, true, &error));
    OK(bytepair_decoder_push(decoder, '?', &text, &error));
    CHECK(text.length == 10);
    OK(bytepair_decoder_push(decoder, '!', &text, &error));
    OK(bytepair_decoder_push(decoder, '!', &text, &error));
    CHECK(text.length == 12 && memcmp(text.data + 10, "?!", 2) == 0);
    CHECK(bytepair_decoder_stopped(decoder) == 0);
    bytepair_decoder_free(decoder);
    bytepair_decoder_free(NULL);
    bytepair_bytes_free(&text);
    FAILS(ARGUMENT, "decoder is NULL", bytepair_decoder_flush(NULL, &text, &error));
}

static void rendering(const char *folder) {
    bytepair_tokenizer *tokenizer = load(folder, "tokenizer.bytepair");
    bytepair_ids ids = {0};
    bytepair_bytes mask = {0};
    const uint32_t text = BYTEPAIR_NO_ID;
    bytepair_segment parts[] = {{.id = 260}, {{"he", 2}, text, false}, {{"llo<s>", 6}, text, true},
                                {.id = 262, .trained = true}, {{NULL, 0}, text, true}};
    OK(bytepair_render(tokenizer, parts, 5, &ids, &mask, &error));
    uint32_t expected[] = {260, 259, '<', 's', '>', 262};
    CHECK(ids.length == 6 && memcmp(ids.data, expected, sizeof expected) == 0);
    CHECK(mask.length == 6 && memcmp(mask.data, "\0\1\1\1\1\1", 6) == 0);
    OK(bytepair_render(tokenizer, parts, 1, &ids, NULL, &error));
    OK(bytepair_render(tokenizer, NULL, 0, &ids, &mask, &error));
    CHECK(ids.length == 7 && mask.length == 6);
    parts[1].text.data = "\xff\xff";
    FAILS(BYTEPAIR_CODE_TEXT_NOT_UTF8, "UTF-8", bytepair_render(tokenizer, parts, 5, &ids, &mask, &error));
    parts[0].id = 4000;
    FAILS(BYTEPAIR_CODE_UNKNOWN_ID, "4000", bytepair_render(tokenizer, parts, 1, &ids, &mask, &error));
    FAILS(ARGUMENT, "segments is NULL", bytepair_render(tokenizer, NULL, 1, &ids, &mask, &error));
    FAILS(ARGUMENT, "ids is NULL", bytepair_render(tokenizer, parts, 0, NULL, &mask, &error));
    FAILS(ARGUMENT, "tokenizer is NULL", bytepair_render(NULL, parts, 0, &ids, &mask, &error));
    CHECK(ids.length == 7 && mask.length == 6);
    bytepair_ids_free(&ids);
    bytepair_bytes_free(&mask);
    bytepair_tokenizer_free(tokenizer);
}

static void training(const char *folder) {
    bytepair_counter *counter;
    bytepair_counts *counts;
    bytepair_tokenizer *tokenizer;
    bytepair_text texts[] = {{"hello hello", 11}, {"hello", TO_ZERO}}, broken[] = {{"a\xff", 2}};
    FAILS(BYTEPAIR_CODE_PATTERN, "gpt5", bytepair_counter_new("gpt5", 1, &counter, &error));
    OK(bytepair_counter_new("gpt4", 2, &counter, &error));
    OK(bytepair_counter_add(counter, texts, 2, &error));
    FAILS(BYTEPAIR_CODE_TEXT_NOT_UTF8, "document 0", bytepair_counter_add(counter, broken, 1, &error));
    OK(bytepair_counter_finish(counter, &counts, &error));
    FAILS(ARGUMENT, "were taken", bytepair_counter_add(counter, texts, 2, &error));
    FAILS(ARGUMENT, "were taken", bytepair_counter_finish(counter, &counts, &error));
    bytepair_counter_free(counter);
    bytepair_counter_free(NULL);

    const char *bytes;
    const size_t *ends;
    const uint64_t *numbers;
    size_t rows;
    OK(bytepair_counts_columns(counts, &bytes, &ends, &numbers, &rows, &error));
    CHECK(rows == 2 && ends[0] == 5 && ends[1] == 11 && memcmp(bytes, "hello hello", 11) == 0);
    CHECK(numbers[0] == 2 && numbers[1] == 1);

    bytepair_text special[] = {{"<s>", 3}};
    bytepair_training options = {.vocab_size = 261, .special_names = special, .special_count = 1};
    OK(bytepair_train(counts, &options, &tokenizer, &error));
    CHECK(has_ids(tokenizer, "hello", NULL, 1, (uint32_t[]){259}));
    OK(bytepair_save(tokenizer, in_folder(folder, "trained.bytepair"), &error));
    FAILS(BYTEPAIR_CODE_FILE, "cannot be written", bytepair_save(tokenizer, "no such folder/a", &error));
    bytepair_tokenizer_free(tokenizer);
    options.vocab_size = 256;
    FAILS(BYTEPAIR_CODE_VOCABULARY, "at least 257", bytepair_train(counts, &options, &tokenizer, &error));
    options.vocab_size = 261;
    options.ties = 5;
    FAILS(ARGUMENT, "ties is 5", bytepair_train(counts, &options, &tokenizer, &error));
    options.ties = BYTEPAIR_TIES_BYTES_MAX;
    options.max_token_bytes = 2;
    options.min_count = 3;
    OK(bytepair_train(counts, &options, &tokenizer, &error));
    CHECK(has_ids(tokenizer, "hello", NULL, 3, (uint32_t[]){257, 108, 256}));
    bytepair_tokenizer_free(tokenizer);
    bytepair_counts_free(counts);
    bytepair_counts_free(NULL);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    loading(argv[1]);
    ranks(argv[1]);
    bytepair_tokenizer *tokenizer = load(argv[1], "tokenizer.bytepair");
    bytepair_tokenizer *other = load(argv[1], "tokenizer.bytepair");
    vocabulary(tokenizer);
    encoding(tokenizer, other);
    growing(tokenizer);
    truncating(tokenizer);
    decoding(tokenizer);
    rendering(argv[1]);
    training(argv[1]);

    /* what a tokenizer made stays valid without it */
    bytepair_decoder *decoder;
    bytepair_bytes text = {0};
    OK(bytepair_decoder_new(tokenizer, &decoder, &error));
    bytepair_tokenizer_free(tokenizer);
    bytepair_tokenizer_free(other);
    OK(bytepair_decoder_push(decoder, 259, &text, &error));
    CHECK(text.length == 5);
    bytepair_decoder_free(decoder);
    bytepair_bytes_free(&text);
    puts("all calls");
    return 0;
}
