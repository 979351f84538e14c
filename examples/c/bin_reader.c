/* A tokenizer without a library: reads tokenizer.bin, encodes a text, prints it token by token.
 *
 *     bin_reader FILE           prints the text of the standard input, token by token
 *     bin_reader --ids FILE     prints its ids
 *     bin_reader --list FILE    prints the ids of the header, and id, score and bytes (hexadecimal)
 *                               of all tokens
 *
 * FILE is of the format qwen3 if its name ends in .tokenizer, else of the format llama2c. All that
 * is needed stands in docs/formats.md, "llama2.c and qwen3". These files have no split pattern, so
 * the whole text is merged; an engine splits the text first, and merges each pretoken by itself.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The score of a token that no merge makes: a byte, a special token, an unused id. */
#define NO_MERGE -1e6f

typedef struct {
    float score;
    uint32_t length, id;
    unsigned char *bytes;
} token;

typedef struct {
    token *tokens;    /* by id */
    token **by_bytes; /* sorted by bytes, then by id */
    uint32_t count;
    uint32_t begin, end; /* the ids that begin and end a text; only in the format qwen3 */
} vocabulary;

static void fail(const char *reason) {
    fprintf(stderr, "%s\n", reason);
    exit(1);
}

static void *allocate(void *old, size_t size) {
    void *memory = realloc(old, size ? size : 1);
    if (!memory) fail("out of memory");
    return memory;
}

/* An unsigned number of 4 bytes, least significant byte first; 0 at the end of the file. */
static int read_number(FILE *file, uint32_t *number) {
    unsigned char bytes[4];
    size_t read = fread(bytes, 1, 4, file);
    if (read == 0 && feof(file)) return 0;
    if (read != 4) fail("the file is cut off");
    *number = (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
              (uint32_t)bytes[3] << 24;
    return 1;
}

static int compare_bytes(const unsigned char *a, uint32_t a_length, const unsigned char *b,
                         uint32_t b_length) {
    int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
    return order ? order : (a_length > b_length) - (a_length < b_length);
}

static int by_bytes_and_id(const void *a, const void *b) {
    const token *one = *(token *const *)a, *other = *(token *const *)b;
    int order = compare_bytes(one->bytes, one->length, other->bytes, other->length);
    return order ? order : (one->id > other->id) - (one->id < other->id);
}

/* Reads tokens until the file ends. */
static vocabulary read_vocabulary(FILE *file, int is_qwen3) {
    vocabulary found = {0};
    uint32_t longest, bits, capacity = 0;
    if (!read_number(file, &longest)) fail("the file is empty");
    if (is_qwen3 && !(read_number(file, &found.begin) && read_number(file, &found.end))) {
        fail("the file is cut off");
    }
    while (read_number(file, &bits)) {
        token next = {0};
        memcpy(&next.score, &bits, 4); /* IEEE 754 */
        if (!read_number(file, &next.length)) fail("the file is cut off");
        if (next.length > longest) fail("a token is longer than the longest");
        next.id = found.count;
        next.bytes = allocate(NULL, next.length);
        if (fread(next.bytes, 1, next.length, file) != next.length) fail("the file is cut off");
        if (found.count == capacity) {
            capacity = capacity ? 2 * capacity : 1024;
            found.tokens = allocate(found.tokens, capacity * sizeof *found.tokens);
        }
        found.tokens[found.count++] = next;
    }
    found.by_bytes = allocate(NULL, found.count * sizeof *found.by_bytes);
    for (uint32_t id = 0; id < found.count; id++) found.by_bytes[id] = &found.tokens[id];
    qsort(found.by_bytes, found.count, sizeof *found.by_bytes, by_bytes_and_id);
    return found;
}

static void free_vocabulary(vocabulary *found) {
    for (uint32_t id = 0; id < found->count; id++) free(found->tokens[id].bytes);
    free(found->tokens);
    free(found->by_bytes);
}

/* The token with these bytes, or NULL. */
static const token *find(const vocabulary *all, const unsigned char *bytes, uint32_t length) {
    uint32_t low = 0, high = all->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const token *at = all->by_bytes[middle];
        if (compare_bytes(at->bytes, at->length, bytes, length) < 0) low = middle + 1;
        else high = middle;
    }
    if (low == all->count) return NULL;
    const token *at = all->by_bytes[low];
    return compare_bytes(at->bytes, at->length, bytes, length) ? NULL : at;
}

/* The ids of the bytes of a text. */
static void start(const vocabulary *all, const unsigned char *text, size_t size, uint32_t *ids) {
    for (size_t at = 0; at < size; at++) {
        const token *byte = find(all, text + at, 1);
        if (!byte) fail("a byte of the text is no token");
        ids[at] = byte->id;
    }
}

/* Merges the neighbours whose joined bytes are the token with the highest score, the first among
 * equals, until none are left. Returns the number of ids. */
static size_t merge(const vocabulary *all, uint32_t *ids, size_t count) {
    unsigned char *joined = allocate(NULL, 1);
    for (;;) {
        const token *best = NULL;
        size_t place = 0;
        for (size_t i = 0; i + 1 < count; i++) {
            const token *left = &all->tokens[ids[i]], *right = &all->tokens[ids[i + 1]];
            joined = allocate(joined, (size_t)left->length + right->length);
            memcpy(joined, left->bytes, left->length);
            memcpy(joined + left->length, right->bytes, right->length);
            const token *one = find(all, joined, left->length + right->length);
            if (one && one->score > (best ? best->score : NO_MERGE)) best = one, place = i;
        }
        if (!best) break;
        ids[place] = best->id;
        memmove(ids + place + 1, ids + place + 2, (--count - place - 1) * sizeof *ids);
    }
    free(joined);
    return count;
}

static unsigned char *read_text(FILE *file, size_t *size) {
    unsigned char *text = NULL;
    size_t read;
    *size = 0;
    do {
        text = allocate(text, *size + 4096);
        read = fread(text + *size, 1, 4096, file);
        *size += read;
    } while (read);
    return text;
}

static void list(const vocabulary *all, int is_qwen3) {
    if (is_qwen3) printf("%u %u\n", (unsigned)all->begin, (unsigned)all->end);
    for (uint32_t id = 0; id < all->count; id++) {
        printf("%u %.9g ", (unsigned)id, all->tokens[id].score);
        for (uint32_t i = 0; i < all->tokens[id].length; i++) printf("%02x", all->tokens[id].bytes[i]);
        puts("");
    }
}

/* Prints the ids of a text, or its tokens. */
static void encode(const vocabulary *all, const unsigned char *text, size_t size, int only_ids) {
    uint32_t *ids = allocate(NULL, size * sizeof *ids);
    start(all, text, size, ids);
    size_t count = merge(all, ids, size);
    for (size_t i = 0; i < count; i++) {
        const token *one = &all->tokens[ids[i]];
        if (only_ids) printf("%u\n", (unsigned)one->id);
        else fwrite(one->bytes, 1, one->length, stdout);
    }
    free(ids);
}

int main(int argc, char **argv) {
    const char *mode = argc == 3 ? argv[1] : "", *name = argv[argc - 1];
    FILE *file = argc == 2 || argc == 3 ? fopen(name, "rb") : NULL;
    if (!file) fail("usage: bin_reader [--ids | --list] FILE");
    const char *ending = strrchr(name, '.');
    int is_qwen3 = ending && strcmp(ending, ".tokenizer") == 0;
    vocabulary all = read_vocabulary(file, is_qwen3);
    fclose(file);
    if (strcmp(mode, "--list") == 0) {
        list(&all, is_qwen3);
    } else {
        size_t size;
        unsigned char *text = read_text(stdin, &size);
        encode(&all, text, size, strcmp(mode, "--ids") == 0);
        free(text);
    }
    free_vocabulary(&all);
    return 0;
}
