/* bytepair: byte-level BPE tokenizers for C. Made of rust/capi/src by `make header`; do not edit.
 *
 * A call returns a code: BYTEPAIR_CODE_OK, which is 0, if it succeeds. If it fails, it writes the
 * reason into the error that the caller passes, which may be NULL, and its results must not be used.
 * Nothing is global.
 *
 * Texts are UTF-8, as a pointer and a length in bytes; BYTEPAIR_ZERO_TERMINATED in place of the
 * length means that a zero byte ends the text. Paths and patterns always end with a zero byte.
 *
 * What a call makes, such as a tokenizer, is freed by the function of its type whose name ends in
 * _free, once, when no other call uses it. Otherwise, any number of threads may use it at once.
 * A buffer belongs to one thread at a time.
 *
 * Every pointer that is passed must be NULL, where that is allowed or an error, or point to a valid
 * value of its type. */

#ifndef BYTEPAIR_H
#define BYTEPAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Stands for the length of a text that a zero byte ends. */
#define BYTEPAIR_ZERO_TERMINATED ((size_t)-1)

// Room for a message of 1,000 characters and its zero byte.
#define BYTEPAIR_MESSAGE_BYTES 4096

// Stands for an id where there is none.
#define BYTEPAIR_NO_ID UINT32_MAX

// The role of the special token that begins a text.
#define BYTEPAIR_ROLE_BOS 0

// The role of the special token that ends a text.
#define BYTEPAIR_ROLE_EOS 1

// The role of the special token that fills the end of a row.
#define BYTEPAIR_ROLE_PAD 2

// The role of the special token that ends a turn of a conversation.
#define BYTEPAIR_ROLE_END_OF_TURN 3

// The text of special tokens is ordinary text, except that of added tokens that control nothing.
#define BYTEPAIR_SPECIAL_TEXT 0

// Every special token becomes its id.
#define BYTEPAIR_SPECIAL_ALL 1

// The named special tokens become their ids; others are ordinary text.
#define BYTEPAIR_SPECIAL_ONLY 2

// The text of a special token is an error.
#define BYTEPAIR_SPECIAL_ERROR 3

// No special token is found, and no added token that controls nothing.
#define BYTEPAIR_SPECIAL_NONE 4

// As BYTEPAIR_SPECIAL_TEXT, for the messages of a conversation: added tokens are found only if
// they are white space.
#define BYTEPAIR_SPECIAL_MESSAGE 5

// Ties: the smallest pair of ids is merged first, as in rustbpe.
#define BYTEPAIR_TIES_RUSTBPE 0

// Ties: the smallest pair of ids with the bytes in the order of GPT-2's characters, as in Hugging
// Face tokenizers.
#define BYTEPAIR_TIES_HF 1

// Ties: the pair that occurs first in the texts, as in minbpe.
#define BYTEPAIR_TIES_FIRST_SEEN 2

// Ties: the greatest pair of byte strings, as in Stanford's CS336.
#define BYTEPAIR_TIES_BYTES_MAX 3

// Ties: the greatest pair of strings of GPT-2's characters, as in parity-aware trainers.
#define BYTEPAIR_TIES_CHARACTERS_MAX 4

// What a call came to. New codes may be added.
enum bytepair_code
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // The call did what it says.
    BYTEPAIR_CODE_OK = 0,
    // An argument is NULL, or has a value that is not allowed.
    BYTEPAIR_CODE_ARGUMENT = 1,
    // The buffer of the caller is too small; the number of values it needs was written.
    BYTEPAIR_CODE_TOO_SMALL = 2,
    // A text is not UTF-8.
    BYTEPAIR_CODE_TEXT_NOT_UTF8 = 3,
    // An id is not in the vocabulary.
    BYTEPAIR_CODE_UNKNOWN_ID = 4,
    // A special token is unknown, or occurs where it is forbidden.
    BYTEPAIR_CODE_SPECIAL_TOKEN = 5,
    // A split pattern is not valid or not known.
    BYTEPAIR_CODE_PATTERN = 6,
    // A text cannot be split by the pattern, or no token covers one of its bytes.
    BYTEPAIR_CODE_SPLIT = 7,
    // A vocabulary or its size breaks a rule.
    BYTEPAIR_CODE_VOCABULARY = 8,
    // A tokenizer file is damaged or of an unknown format.
    BYTEPAIR_CODE_FORMAT = 9,
    // A tokenizer file asks for something that is not done exactly.
    BYTEPAIR_CODE_UNSUPPORTED = 10,
    // A file cannot be read or written.
    BYTEPAIR_CODE_FILE = 11,
    // Counts break a rule, or exceed 64 bits.
    BYTEPAIR_CODE_COUNTS = 12,
    // Memory could not be allocated.
    BYTEPAIR_CODE_OUT_OF_MEMORY = 13,
    // A defect of the library; please report it with the message.
    BYTEPAIR_CODE_INTERNAL = 14,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum bytepair_code bytepair_code;
#else
typedef int32_t bytepair_code;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Counts the pretokens of texts. Calls from several threads take turns.
typedef struct bytepair_counter bytepair_counter;

// Distinct pretokens and how often each occurs. Any number of threads may use them at once.
typedef struct bytepair_counts bytepair_counts;

// Decodes ids one by one, as a model generates them. Calls from several threads take turns.
typedef struct bytepair_decoder bytepair_decoder;

// A tokenizer. Any number of threads may use it at once; it never changes.
typedef struct bytepair_tokenizer bytepair_tokenizer;

// How a text is encoded: prepared once for a tokenizer, for any number of texts. Any number of
// threads may use it at once; it never changes.
typedef struct bytepair_options bytepair_options;

// What a failed call says. A call that succeeds leaves it as it was.
typedef struct {
    // The same as the result of the call.
    bytepair_code code;
    // The rule, the value that breaks it and the way out; UTF-8, ends with a zero byte.
    char message[BYTEPAIR_MESSAGE_BYTES];
} bytepair_error;

// A text: UTF-8 and its length in bytes, or BYTEPAIR_ZERO_TERMINATED in place of the length.
typedef struct {
    // The first byte. May be NULL if the length is 0.
    const char *data;
    // The number of bytes.
    size_t length;
} bytepair_text;

// Ids in a buffer that the library grows. Set all fields to zero at first; set the length to zero
// to use the memory again; `bytepair_ids_free` frees it. Change nothing else.
typedef struct {
    // The first id; NULL only before the first call.
    uint32_t *data;
    // The number of ids.
    size_t length;
    // The number of ids that there is room for.
    size_t capacity;
} bytepair_ids;

// A part of a conversation: a text, or an id.
typedef struct {
    // The text, if `id` is BYTEPAIR_NO_ID. It never becomes a special token, whatever it contains.
    bytepair_text text;
    // The id, usually of a special token; BYTEPAIR_NO_ID for a text.
    uint32_t id;
    // Whether a model is trained on this part.
    bool trained;
} bytepair_segment;

// Bytes in a buffer that the library grows. Set all fields to zero at first; set the length to
// zero to use the memory again; `bytepair_bytes_free` frees it. Change nothing else.
typedef struct {
    // The first byte; NULL only before the first call. No zero byte is added at the end.
    char *data;
    // The number of bytes.
    size_t length;
    // The number of bytes that there is room for.
    size_t capacity;
} bytepair_bytes;

// The options of a training. Fields that are zero have their usual values.
typedef struct {
    // The number of ids: the 256 bytes, one for each merge, and the special tokens.
    size_t vocab_size;
    // The names of the special tokens, which have the last ids, in this order.
    const bytepair_text *special_names;
    // The number of special tokens.
    size_t special_count;
    // Which of several pairs with the same count is merged first: BYTEPAIR_TIES_RUSTBPE or another.
    uint32_t ties;
    // Pairs with a smaller count are not merged. 0 stands for 1.
    uint64_t min_count;
    // Pairs whose token would have more bytes are not merged. 0 stands for no limit.
    size_t max_token_bytes;
    // The largest number of threads; it does not change the result. 0 stands for 1.
    size_t threads;
} bytepair_training;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Load a tokenizer from a native file, which is mapped into memory (read on Windows, where a mapped
// file could not be replaced), or from a tokenizer.json. The content of the file tells which.
//
// While the tokenizer is in use, nobody may write to a native file or truncate it; it may be
// deleted or replaced. The path is UTF-8.
bytepair_code bytepair_load(const char *path,
                            bytepair_tokenizer **tokenizer,
                            bytepair_error *error);

// Load a tokenizer from the bytes of a native file or of a tokenizer.json, which are copied.
bytepair_code bytepair_load_bytes(const uint8_t *data,
                                  size_t length,
                                  bytepair_tokenizer **tokenizer,
                                  bytepair_error *error);

// Load a tokenizer from a rank file: on each line a token in base64, a space and its rank, which
// is its id, as tiktoken publishes them.
//
// The file has neither a split pattern nor special tokens: pass the name of a pattern, such as
// "gpt4", or a regular expression, and the names of the special tokens with their ids.
bytepair_code bytepair_load_ranks(const char *path,
                                  const char *pattern,
                                  const bytepair_text *special_names,
                                  const uint32_t *special_ids,
                                  size_t special_count,
                                  bytepair_tokenizer **tokenizer,
                                  bytepair_error *error);

// Load a tokenizer from the bytes of a rank file; see bytepair_load_ranks.
bytepair_code bytepair_load_ranks_bytes(const uint8_t *data,
                                        size_t length,
                                        const char *pattern,
                                        const bytepair_text *special_names,
                                        const uint32_t *special_ids,
                                        size_t special_count,
                                        bytepair_tokenizer **tokenizer,
                                        bytepair_error *error);

// Save a tokenizer as a native file, which replaces a file of that name at once. The path is
// UTF-8.
bytepair_code bytepair_save(const bytepair_tokenizer *tokenizer,
                            const char *path,
                            bytepair_error *error);

// Free a tokenizer. What was made from it stays valid, except pointers into it. NULL is allowed.
void bytepair_tokenizer_free(bytepair_tokenizer *tokenizer);

// The number of ids, including unused ones: all ids are below it. 0 for NULL.
size_t bytepair_vocab_size(const bytepair_tokenizer *tokenizer);

// Whether every text is decoded to itself; some tokenizers change texts before they encode them.
// False for NULL.
bool bytepair_is_lossless(const bytepair_tokenizer *tokenizer);

// The bytes of an id: of an ordinary token, which may be a part of a character, or the name of a
// special token. The pointer is valid as long as the tokenizer, and no zero byte follows. Fails if
// the id is unused or too large.
bytepair_code bytepair_token_bytes(const bytepair_tokenizer *tokenizer,
                                   uint32_t id,
                                   const char **data,
                                   size_t *length,
                                   bytepair_error *error);

// The id of the ordinary token with these bytes; BYTEPAIR_NO_ID if there is none.
uint32_t bytepair_token_id(const bytepair_tokenizer *tokenizer, const char *token, size_t length);

// The number of special tokens. 0 for NULL.
size_t bytepair_special_count(const bytepair_tokenizer *tokenizer);

// The special token at an index, in the order of ids: its name, as long as the tokenizer is valid,
// and its id. No zero byte follows the name.
bytepair_code bytepair_special_token(const bytepair_tokenizer *tokenizer,
                                     size_t index,
                                     const char **name,
                                     size_t *length,
                                     uint32_t *id,
                                     bytepair_error *error);

// The id of a special token by its name; the message of the error lists the special tokens.
bytepair_code bytepair_special_id(const bytepair_tokenizer *tokenizer,
                                  const char *name,
                                  size_t length,
                                  uint32_t *id,
                                  bytepair_error *error);

// The id of the special token with a role, one of BYTEPAIR_ROLE_BOS, BYTEPAIR_ROLE_EOS,
// BYTEPAIR_ROLE_PAD and BYTEPAIR_ROLE_END_OF_TURN; BYTEPAIR_NO_ID if there is none.
//
// Roles are those that the native file states, and those that follow from the names of special
// tokens.
uint32_t bytepair_role(const bytepair_tokenizer *tokenizer, uint32_t role);

// Prepare options. `special` is one of BYTEPAIR_SPECIAL_TEXT, ..._ALL, ..._ONLY, ..._ERROR,
// ..._NONE and ..._MESSAGE; `names` are those of BYTEPAIR_SPECIAL_ONLY. The ids `prepend` and
// `append` precede and follow each text, unless they are BYTEPAIR_NO_ID; if `add_special_tokens`,
// so do those of the post-processor of a tokenizer.json, next to the text.
bytepair_code bytepair_options_new(const bytepair_tokenizer *tokenizer,
                                   uint32_t special,
                                   const bytepair_text *names,
                                   size_t names_count,
                                   uint32_t prepend,
                                   uint32_t append,
                                   bool add_special_tokens,
                                   bytepair_options **options,
                                   bytepair_error *error);

// Free options. NULL is allowed.
void bytepair_options_free(bytepair_options *options);

// Encode a text into a buffer of the caller.
//
// Writes as many ids as there is room for, and to `count` the number of all. If that is more than
// `capacity`, the result is BYTEPAIR_CODE_TOO_SMALL. `options` may be NULL: the text of special tokens
// is then ordinary text, and no ids are added.
bytepair_code bytepair_encode(const bytepair_tokenizer *tokenizer,
                              const char *text,
                              size_t length,
                              const bytepair_options *options,
                              uint32_t *ids,
                              size_t capacity,
                              size_t *count,
                              bytepair_error *error);

// Encode a text and append its ids to a buffer that grows. After an error the ids are as before.
// `options` may be NULL, as for bytepair_encode.
bytepair_code bytepair_encode_append(const bytepair_tokenizer *tokenizer,
                                     const char *text,
                                     size_t length,
                                     const bytepair_options *options,
                                     bytepair_ids *ids,
                                     bytepair_error *error);

// The number of ids of a text; faster than encoding. `options` may be NULL, as for
// bytepair_encode.
bytepair_code bytepair_count(const bytepair_tokenizer *tokenizer,
                             const char *text,
                             size_t length,
                             const bytepair_options *options,
                             size_t *count,
                             bytepair_error *error);

// Truncate a text to at most `most` ids, without cutting a character: writes where the part that
// is kept starts, and its number of bytes. Keeps the end of the text if `keep_end` is true, else
// its start. The text of special tokens counts as ordinary text.
bytepair_code bytepair_truncate(const bytepair_tokenizer *tokenizer,
                                const char *text,
                                size_t length,
                                size_t most,
                                bool keep_end,
                                const char **kept,
                                size_t *kept_length,
                                bytepair_error *error);

// Render a conversation: append its ids to a buffer that grows, and for each id a byte to `mask`, 1
// if a model is trained on it, else 0. `mask` may be NULL. The number of new ids is that of the
// conversation.
//
// Adjacent texts are encoded as one text; no text becomes a special token, not even if several
// segments spell its name. An id that covers bytes of several texts is trained on if one of them is.
// After an error the buffers are as before.
bytepair_code bytepair_render(const bytepair_tokenizer *tokenizer,
                              const bytepair_segment *segments,
                              size_t segments_count,
                              bytepair_ids *ids,
                              bytepair_bytes *mask,
                              bytepair_error *error);

// Decode ids into a buffer of the caller.
//
// Writes as many bytes as there is room for, and to `length` the number of all. If that is more
// than `capacity`, the result is BYTEPAIR_CODE_TOO_SMALL. The bytes are those of the tokens, which may
// end within a character, or not be UTF-8 at all; a decoder gives text instead. No zero byte is
// added. Fails if the vocabulary does not have an id.
bytepair_code bytepair_decode(const bytepair_tokenizer *tokenizer,
                              const uint32_t *ids,
                              size_t ids_count,
                              char *bytes,
                              size_t capacity,
                              size_t *length,
                              bytepair_error *error);

// Decode ids and append their bytes to a buffer that grows. After an error the bytes are as
// before.
bytepair_code bytepair_decode_append(const bytepair_tokenizer *tokenizer,
                                     const uint32_t *ids,
                                     size_t ids_count,
                                     bytepair_bytes *bytes,
                                     bytepair_error *error);

// Start to decode ids one by one.
bytepair_code bytepair_decoder_new(const bytepair_tokenizer *tokenizer,
                                   bytepair_decoder **decoder,
                                   bytepair_error *error);

// Let stop strings end the text of a decoder: the text ends where the first of them is complete (the
// longest, if several are), and the string itself is dropped, unless `keep` is true. What may be the
// beginning of one is held back. The name of a special token also stops at its id. Call this before
// the first id. Fails if a string is empty.
bytepair_code bytepair_decoder_stop(const bytepair_decoder *decoder,
                                    const bytepair_text *stops,
                                    size_t stops_count,
                                    bool keep,
                                    bytepair_error *error);

// The number of the stop string that ended the text, from 0, or SIZE_MAX if none has.
size_t bytepair_decoder_stopped(const bytepair_decoder *decoder);

// Take one id and append the text that is now complete, which may be nothing, to a buffer that
// grows. After a stop string, nothing is appended.
//
// The text is always UTF-8 and never ends within a character; bytes that cannot become a character
// become U+FFFD. If the vocabulary does not have the id, the decoder does not change.
bytepair_code bytepair_decoder_push(const bytepair_decoder *decoder,
                                    uint32_t id,
                                    bytepair_bytes *text,
                                    bytepair_error *error);

// End the text: append U+FFFD if its last character is incomplete, else nothing. The decoder can
// be used again, for another text.
bytepair_code bytepair_decoder_flush(const bytepair_decoder *decoder,
                                     bytepair_bytes *text,
                                     bytepair_error *error);

// Free a decoder. NULL is allowed.
void bytepair_decoder_free(bytepair_decoder *decoder);

// Free the memory of ids; the buffer is then empty and can be used again. NULL is allowed.
void bytepair_ids_free(bytepair_ids *ids);

// Free the memory of bytes; the buffer is then empty and can be used again. NULL is allowed.
void bytepair_bytes_free(bytepair_bytes *bytes);

// Start to count the pretokens of texts. The pattern is the name of one, such as "gpt4", or a
// regular expression. 0 threads stand for 1; the number does not change the counts.
bytepair_code bytepair_counter_new(const char *pattern,
                                   size_t threads,
                                   bytepair_counter **counter,
                                   bytepair_error *error);

// Count the pretokens of texts, each a document of its own.
bytepair_code bytepair_counter_add(const bytepair_counter *counter,
                                   const bytepair_text *texts,
                                   size_t texts_count,
                                   bytepair_error *error);

// Take the counts out of a counter, which counts nothing more; it is still to be freed.
bytepair_code bytepair_counter_finish(const bytepair_counter *counter,
                                      bytepair_counts **counts,
                                      bytepair_error *error);

// Free a counter. NULL is allowed.
void bytepair_counter_free(bytepair_counter *counter);

// The counts as columns: the bytes of all distinct pretokens one after the other, in the order in
// which they first occurred; where each ends in these bytes; how often each occurs; and the number
// of rows. The pointers are valid as long as the counts.
bytepair_code bytepair_counts_columns(const bytepair_counts *counts,
                                      const char **bytes,
                                      const size_t **ends,
                                      const uint64_t **numbers,
                                      size_t *rows,
                                      bytepair_error *error);

// Free counts. NULL is allowed.
void bytepair_counts_free(bytepair_counts *counts);

// Learn a tokenizer from counts. If no pairs are left before the requested size is reached, it has
// fewer ids.
bytepair_code bytepair_train(const bytepair_counts *counts,
                             const bytepair_training *options,
                             bytepair_tokenizer **tokenizer,
                             bytepair_error *error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* BYTEPAIR_H */
