/* Many texts in, their ids out, by several threads that share a tokenizer.
 *
 *     texts TOKENIZER THREADS
 *
 * Standard input: for each text its length in 4 bytes of this machine, and its bytes. Standard
 * output: for each text the number of its ids in 4 bytes, and the ids. Each text is encoded into a
 * buffer that is too small, into one that is large enough, and into one that grows; counted; decoded
 * at once and id by id. All must agree.
 */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytepair.h"
#include "check.h"

typedef struct {
    char *text;
    uint32_t length;
    bytepair_ids ids;
} document;

static bytepair_tokenizer *tokenizer;
static bytepair_options *options;
static document *documents;
static size_t document_count, thread_count;
/* Whether the ids of the post-processor stand around each text; they are no part of it. */
static bool around;

static void check_buffers(const document *one, const bytepair_ids *ids) {
    size_t count;
    uint32_t small[3];
    bytepair_error error;
    CHECK(!bytepair_count(tokenizer, one->text, one->length, options, &count, &error));
    CHECK(count == ids->length);
    uint32_t *large = malloc((count + 1) * sizeof *large);
    CHECK(large);
    CHECK(!bytepair_encode(tokenizer, one->text, one->length, options, large, count, &count, &error));
    CHECK(count == ids->length);
    CHECK(count == 0 || memcmp(large, ids->data, count * sizeof *large) == 0);
    free(large);
    bytepair_code code =
        bytepair_encode(tokenizer, one->text, one->length, options, small, 3, &count, &error);
    CHECK(code == (count > 3 ? BYTEPAIR_CODE_TOO_SMALL : BYTEPAIR_CODE_OK));
    CHECK(count == ids->length);
    CHECK(count == 0 || memcmp(small, ids->data, (count < 3 ? count : 3) * sizeof *small) == 0);
}

static void check_decoding(const document *one, const bytepair_ids *ids) {
    bytepair_bytes whole = {0}, streamed = {0};
    bytepair_decoder *decoder;
    bytepair_error error;
    CHECK(!bytepair_decode_append(tokenizer, ids->data, ids->length, &whole, &error));
    CHECK(whole.length == one->length);
    CHECK(one->length == 0 || memcmp(whole.data, one->text, one->length) == 0);
    CHECK(!bytepair_decoder_new(tokenizer, &decoder, &error));
    for (size_t i = 0; i < ids->length; i++) {
        CHECK(!bytepair_decoder_push(decoder, ids->data[i], &streamed, &error));
        CHECK(streamed.length <= one->length);
        /* what was given so far is whole characters: the next byte begins one */
        int next = streamed.length < one->length ? one->text[streamed.length] & 0xC0 : 0;
        CHECK(next != 0x80);
    }
    CHECK(!bytepair_decoder_flush(decoder, &streamed, &error));
    CHECK(streamed.length == one->length);
    CHECK(one->length == 0 || memcmp(streamed.data, one->text, one->length) == 0);
    bytepair_decoder_free(decoder);
    bytepair_bytes_free(&whole);
    bytepair_bytes_free(&streamed);
}

/* Every `thread_count`-th document, from `start` on. */
static void *work(void *start) {
    bytepair_error error;
    for (size_t at = (size_t)start; at < document_count; at += thread_count) {
        document *one = &documents[at];
        bytepair_code code = bytepair_encode_append(tokenizer, one->text, one->length, options,
                                                    &one->ids, &error);
        if (code) fprintf(stderr, "document %zu: %s\n", at, error.message);
        CHECK(!code);
        check_buffers(one, &one->ids);
        if (!around) check_decoding(one, &one->ids);
    }
    return NULL;
}

static void read_documents(void) {
    uint32_t length;
    size_t capacity = 0;
    while (fread(&length, sizeof length, 1, stdin) == 1) {
        if (document_count == capacity) {
            capacity = capacity ? 2 * capacity : 256;
            documents = realloc(documents, capacity * sizeof *documents);
            CHECK(documents);
        }
        document one = {malloc(length + 1), length, {0}};
        CHECK(one.text && fread(one.text, 1, length, stdin) == length);
        documents[document_count++] = one;
    }
}

int main(int argc, char **argv) {
    bytepair_error error;
    CHECK(argc == 3 || argc == 4);
    around = argc == 4;
    thread_count = (size_t)atoi(argv[2]);
    bytepair_code code = bytepair_load(argv[1], &tokenizer, &error);
    if (code) fprintf(stderr, "%s\n", error.message);
    CHECK(!code && thread_count > 0 && thread_count <= 64);
    CHECK(!bytepair_options_new(tokenizer, BYTEPAIR_SPECIAL_ALL, NULL, 0, BYTEPAIR_NO_ID,
                                BYTEPAIR_NO_ID, around, &options, &error));
    read_documents();
    pthread_t threads[64];
    for (size_t i = 0; i < thread_count; i++) CHECK(!pthread_create(&threads[i], NULL, work, (void *)i));
    for (size_t i = 0; i < thread_count; i++) CHECK(!pthread_join(threads[i], NULL));
    for (size_t at = 0; at < document_count; at++) {
        uint32_t count = (uint32_t)documents[at].ids.length;
        fwrite(&count, sizeof count, 1, stdout);
        fwrite(documents[at].ids.data, sizeof(uint32_t), count, stdout);
        bytepair_ids_free(&documents[at].ids);
        free(documents[at].text);
    }
    free(documents);
    bytepair_options_free(options);
    bytepair_tokenizer_free(tokenizer);
    return 0;
}
