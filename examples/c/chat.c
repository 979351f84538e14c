/* A server's turn of a chat: the conversation is rendered to ids, counted, cut to a context, and the
 * answer is streamed until a stop string.
 *
 *     chat TOKENIZER [MESSAGE]...      messages of the user and of the assistant in turn
 *
 * The format is ChatML; its two special tokens are those of nanochat's template if the tokenizer has
 * no others. The stand-in for a model says the last message again, then goes on as if the user spoke.
 *
 *     cc chat.c $(pkg-config --cflags --libs bytepair) -o chat
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytepair.h"

/* The most ids of a prompt. */
#define CONTEXT 64
/* The most messages of the command line, and the parts of each. */
#define MESSAGES 16
#define PARTS 3

static void check(bytepair_code code, const bytepair_error *error) {
    if (code != BYTEPAIR_CODE_OK) {
        fprintf(stderr, "error %d: %s\n", (int)code, error->message);
        exit(1);
    }
}

static uint32_t special(const bytepair_tokenizer *tokenizer, const char *name, const char *other) {
    bytepair_error error;
    uint32_t id;
    if (bytepair_special_id(tokenizer, name, BYTEPAIR_ZERO_TERMINATED, &id, NULL) != BYTEPAIR_CODE_OK) {
        check(bytepair_special_id(tokenizer, other, BYTEPAIR_ZERO_TERMINATED, &id, &error), &error);
    }
    return id;
}

static bytepair_segment text(const char *words, size_t length) {
    return (bytepair_segment){.text = {words, length}, .id = BYTEPAIR_NO_ID};
}

/* The ids of the messages from the first on, and of the start of an answer. */
static void render(const bytepair_tokenizer *tokenizer, char **messages, int first, int count,
                   bytepair_ids *ids) {
    const char *roles[] = {"user\n", "assistant\n"};
    uint32_t start = special(tokenizer, "<|im_start|>", "<|user_start|>");
    uint32_t end = special(tokenizer, "<|im_end|>", "<|user_end|>");
    bytepair_segment parts[(MESSAGES + 1) * (PARTS + 1)];
    size_t used = 0;
    bytepair_error error;
    for (int i = first; i < count; i++) {
        parts[used++] = (bytepair_segment){.id = start};
        parts[used++] = text(roles[i % 2], BYTEPAIR_ZERO_TERMINATED);
        parts[used++] = text(messages[i], strlen(messages[i]));
        parts[used++] = (bytepair_segment){.id = end};
    }
    parts[used++] = (bytepair_segment){.id = start};
    parts[used++] = text(roles[1], BYTEPAIR_ZERO_TERMINATED);
    ids->length = 0;
    check(bytepair_render(tokenizer, parts, used, ids, NULL, &error), &error);
}

/* Prints the answer as it comes, up to a stop string. */
static void answer(const bytepair_tokenizer *tokenizer, const char *said) {
    const bytepair_text stops[] = {{"\nuser", 5}, {"<|im_end|>", 10}};
    bytepair_error error;
    bytepair_ids ids = {0};
    bytepair_bytes words = {0};
    bytepair_decoder *decoder;
    check(bytepair_encode_append(tokenizer, said, strlen(said), NULL, &ids, &error), &error);
    check(bytepair_encode_append(tokenizer, "\nuser\nWhat else?", 16, NULL, &ids, &error), &error);
    check(bytepair_decoder_new(tokenizer, &decoder, &error), &error);
    check(bytepair_decoder_stop(decoder, stops, 2, false, &error), &error);
    for (size_t i = 0; i < ids.length && bytepair_decoder_stopped(decoder) == SIZE_MAX; i++) {
        check(bytepair_decoder_push(decoder, ids.data[i], &words, &error), &error);
        fwrite(words.data, 1, words.length, stdout);
        fflush(stdout);
        words.length = 0;
    }
    bytepair_decoder_free(decoder);
    bytepair_bytes_free(&words);
    bytepair_ids_free(&ids);
}

int main(int argc, char **argv) {
    int count = argc - 2, first = 0;
    if (count < 1 || count > MESSAGES || count % 2 == 0) {
        fprintf(stderr, "usage: %s TOKENIZER MESSAGE [ANSWER MESSAGE]...\n", argv[0]);
        return 2;
    }
    bytepair_error error;
    bytepair_tokenizer *tokenizer;
    bytepair_ids ids = {0};
    check(bytepair_load(argv[1], &tokenizer, &error), &error);
    render(tokenizer, argv + 2, first, count, &ids);
    while (ids.length > CONTEXT && first + 2 < count) {
        render(tokenizer, argv + 2, first += 2, count, &ids);
    }
    fprintf(stderr, "%zu ids, without the first %d messages\n", ids.length, first);
    answer(tokenizer, argv[argc - 1]);
    bytepair_ids_free(&ids);
    bytepair_tokenizer_free(tokenizer);
    return 0;
}
