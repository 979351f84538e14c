// bytepair for C++20: bytepair.h with objects that free what they hold, and exceptions.
//
// Texts go in as std::string_view and come out as std::string; ids go in as std::span and come out
// as Ids. Objects can be moved, and not copied. Any number of threads may use one Tokenizer at once;
// share it by reference or by std::shared_ptr. What a Tokenizer made stays valid without it, except
// views of its bytes.
//
//     bytepair::Tokenizer tokenizer = bytepair::Tokenizer::load("tokenizer.bytepair");
//     bytepair::Ids ids = tokenizer.encode("Hello world");
//     std::string text = tokenizer.decode(ids);

#ifndef BYTEPAIR_HPP
#define BYTEPAIR_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bytepair.h"

namespace bytepair {

// A failed call, with the reason as its message.
class Error : public std::runtime_error {
public:
    explicit Error(const bytepair_error &error)
        : std::runtime_error(error.message), code_(error.code) {}

    // What went wrong: BYTEPAIR_CODE_ARGUMENT or another.
    bytepair_code code() const noexcept { return code_; }

private:
    bytepair_code code_;
};

enum class Role : std::uint32_t {
    bos = BYTEPAIR_ROLE_BOS,
    eos = BYTEPAIR_ROLE_EOS,
    pad = BYTEPAIR_ROLE_PAD,
    end_of_turn = BYTEPAIR_ROLE_END_OF_TURN,
};

// How the text of a special token is encoded; bytepair.h says what each means.
enum class Special : std::uint32_t {
    text = BYTEPAIR_SPECIAL_TEXT,
    all = BYTEPAIR_SPECIAL_ALL,
    only = BYTEPAIR_SPECIAL_ONLY,
    error = BYTEPAIR_SPECIAL_ERROR,
    none = BYTEPAIR_SPECIAL_NONE,
    message = BYTEPAIR_SPECIAL_MESSAGE,
};

// Which of several pairs with the same count is merged first; bytepair.h says what each means.
enum class Ties : std::uint32_t {
    rustbpe = BYTEPAIR_TIES_RUSTBPE,
    hf = BYTEPAIR_TIES_HF,
    first_seen = BYTEPAIR_TIES_FIRST_SEEN,
    bytes_max = BYTEPAIR_TIES_BYTES_MAX,
    characters_max = BYTEPAIR_TIES_CHARACTERS_MAX,
};

// A special token: its name and its id.
struct SpecialToken {
    std::string_view name;
    std::uint32_t id;
};

namespace detail {

// Calls a function of bytepair.h with `arguments` and a place for its error; throws if it fails.
template <typename Function, typename... Arguments>
void call(Function function, Arguments... arguments) {
    bytepair_error error;
    if (function(arguments..., &error) != BYTEPAIR_CODE_OK) {
        throw Error(error);
    }
}

// Frees a handle by its function.
template <auto function> struct Free {
    template <typename Handle> void operator()(Handle *handle) const noexcept { function(handle); }
};

template <typename Handle, auto function> using Owned = std::unique_ptr<Handle, Free<function>>;

inline std::vector<bytepair_text> texts(std::span<const std::string_view> views) {
    std::vector<bytepair_text> texts;
    texts.reserve(views.size());
    for (std::string_view view : views) {
        texts.push_back({view.data(), view.size()});
    }
    return texts;
}

// Bytes that the library grows.
class Bytes {
public:
    Bytes() = default;
    Bytes(const Bytes &) = delete;
    Bytes &operator=(const Bytes &) = delete;
    ~Bytes() { bytepair_bytes_free(&bytes_); }

    bytepair_bytes *get() noexcept { return &bytes_; }
    std::string text() const { return bytes_.data ? std::string(bytes_.data, bytes_.length) : ""; }

private:
    bytepair_bytes bytes_{};
};

} // namespace detail

// Ids in memory of the library. Converts to std::span<const std::uint32_t>.
class Ids {
public:
    Ids() = default;
    Ids(Ids &&other) noexcept : ids_(std::exchange(other.ids_, {})) {}
    Ids &operator=(Ids &&other) noexcept {
        std::swap(ids_, other.ids_);
        return *this;
    }
    ~Ids() { bytepair_ids_free(&ids_); }

    const std::uint32_t *data() const noexcept { return ids_.data; }
    std::size_t size() const noexcept { return ids_.length; }
    bool empty() const noexcept { return size() == 0; }
    const std::uint32_t *begin() const noexcept { return data(); }
    const std::uint32_t *end() const noexcept { return data() + size(); }
    std::uint32_t operator[](std::size_t index) const noexcept { return data()[index]; }

    // Removes all ids and keeps the memory for others.
    void clear() noexcept { ids_.length = 0; }
    bytepair_ids *get() noexcept { return &ids_; }

private:
    bytepair_ids ids_{};
};

// How texts are encoded. Made by Tokenizer::options, for that tokenizer.
class Options {
public:
    const bytepair_options *get() const noexcept { return options_.get(); }

private:
    friend class Tokenizer;
    explicit Options(bytepair_options *options) : options_(options) {}
    detail::Owned<bytepair_options, bytepair_options_free> options_;
};

// A part of a conversation: a text, which never becomes a special token, or an id.
struct Segment {
    Segment(std::string_view text, bool trained = false) : text(text), trained(trained) {}
    Segment(std::uint32_t id, bool trained = false) : id(id), trained(trained) {}

    std::string_view text;
    std::uint32_t id = BYTEPAIR_NO_ID;
    bool trained;
};

// A conversation: its ids, and for each 1 if a model is trained on it, else 0.
struct Rendered {
    Ids ids;
    std::vector<std::uint8_t> mask;
};

// Decodes ids one by one; never gives a part of a character. Made by Tokenizer::decoder.
class Decoder {
public:
    // Takes one id and returns the text that is now complete, which may be empty.
    std::string push(std::uint32_t id) {
        detail::Bytes text;
        detail::call(bytepair_decoder_push, decoder_.get(), id, text.get());
        return text.text();
    }

    // Ends the text at the first of some strings, which is dropped unless `keep` is true. Call this
    // before the first id.
    void stop(std::span<const std::string_view> strings, bool keep = false) {
        const std::vector<bytepair_text> texts = detail::texts(strings);
        detail::call(bytepair_decoder_stop, decoder_.get(), texts.data(), texts.size(), keep);
    }

    // The number of the stop string that ended the text, if one has.
    std::optional<std::size_t> stopped() const noexcept {
        const std::size_t number = bytepair_decoder_stopped(decoder_.get());
        return number == SIZE_MAX ? std::nullopt : std::optional(number);
    }

    // Ends the text: returns what was held back, and U+FFFD if its last character is incomplete.
    std::string flush() {
        detail::Bytes text;
        detail::call(bytepair_decoder_flush, decoder_.get(), text.get());
        return text.text();
    }

private:
    friend class Tokenizer;
    explicit Decoder(bytepair_decoder *decoder) : decoder_(decoder) {}
    detail::Owned<bytepair_decoder, bytepair_decoder_free> decoder_;
};

// A tokenizer; it never changes.
class Tokenizer {
public:
    // Loads a native file, which is mapped, or a tokenizer.json. Nobody may write to a mapped file.
    static Tokenizer load(const std::string &path) { return made(bytepair_load, path.c_str()); }

    // Loads the bytes of a native file or of a tokenizer.json.
    static Tokenizer from_bytes(std::span<const std::uint8_t> bytes) {
        return made(bytepair_load_bytes, bytes.data(), bytes.size());
    }

    // Loads a rank file, with the name of a pattern or a regular expression.
    static Tokenizer load_ranks(const std::string &path, const std::string &pattern,
                                std::span<const SpecialToken> special = {}) {
        std::vector<bytepair_text> names;
        std::vector<std::uint32_t> ids;
        for (const SpecialToken &token : special) {
            names.push_back({token.name.data(), token.name.size()});
            ids.push_back(token.id);
        }
        return made(bytepair_load_ranks, path.c_str(), pattern.c_str(), names.data(), ids.data(),
                    ids.size());
    }

    // Saves a native file.
    void save(const std::string &path) const { detail::call(bytepair_save, get(), path.c_str()); }

    // Prepares how texts are encoded: the text of special tokens, and the ids around each text.
    Options options(Special special, std::span<const std::string_view> names = {},
                    std::optional<std::uint32_t> prepend = {},
                    std::optional<std::uint32_t> append = {},
                    bool add_special_tokens = false) const {
        std::vector<bytepair_text> texts = detail::texts(names);
        bytepair_options *options = nullptr;
        detail::call(bytepair_options_new, get(), static_cast<std::uint32_t>(special), texts.data(),
                     texts.size(), prepend.value_or(BYTEPAIR_NO_ID),
                     append.value_or(BYTEPAIR_NO_ID), add_special_tokens, &options);
        return Options(options);
    }

    // The ids of a text. Without options, the text of special tokens is ordinary text.
    Ids encode(std::string_view text) const { return encoded(text, nullptr); }
    Ids encode(std::string_view text, const Options &options) const {
        return encoded(text, options.get());
    }

    // The number of ids of a text; faster than encoding.
    std::size_t count(std::string_view text) const { return counted(text, nullptr); }
    std::size_t count(std::string_view text, const Options &options) const {
        return counted(text, options.get());
    }

    // The ids and the loss mask of a conversation. Adjacent texts are encoded as one.
    Rendered render(std::span<const Segment> segments) const {
        std::vector<bytepair_segment> parts;
        parts.reserve(segments.size());
        for (const Segment &part : segments) {
            parts.push_back({{part.text.data(), part.text.size()}, part.id, part.trained});
        }
        Rendered rendered;
        detail::Bytes mask;
        detail::call(bytepair_render, get(), parts.data(), parts.size(), rendered.ids.get(),
                     mask.get());
        const std::string bytes = mask.text();
        rendered.mask.assign(bytes.begin(), bytes.end());
        return rendered;
    }

    // The start of a text, or its end, with at most `most` ids: a part of `text`.
    std::string_view truncate(std::string_view text, std::size_t most, bool keep_end = false) const {
        const char *kept = nullptr;
        std::size_t length = 0;
        detail::call(bytepair_truncate, get(), text.data(), text.size(), most, keep_end, &kept,
                     &length);
        return {kept, length};
    }

    // The bytes of ids, which may end within a character.
    std::string decode(std::span<const std::uint32_t> ids) const {
        detail::Bytes bytes;
        detail::call(bytepair_decode_append, get(), ids.data(), ids.size(), bytes.get());
        return bytes.text();
    }

    Decoder decoder() const {
        bytepair_decoder *decoder = nullptr;
        detail::call(bytepair_decoder_new, get(), &decoder);
        return Decoder(decoder);
    }

    // The number of ids, including unused ones: all ids are below it.
    std::size_t vocab_size() const noexcept { return bytepair_vocab_size(get()); }
    bool is_lossless() const noexcept { return bytepair_is_lossless(get()); }

    // The bytes of an id; valid as long as the tokenizer.
    std::string_view token_bytes(std::uint32_t id) const {
        const char *data = nullptr;
        std::size_t length = 0;
        detail::call(bytepair_token_bytes, get(), id, &data, &length);
        return {data, length};
    }

    // The id of an ordinary token.
    std::optional<std::uint32_t> token_id(std::string_view token) const noexcept {
        return known(bytepair_token_id(get(), token.data(), token.size()));
    }

    // The special tokens in the order of ids; their names are valid as long as the tokenizer.
    std::vector<SpecialToken> special_tokens() const {
        std::vector<SpecialToken> tokens;
        for (std::size_t index = 0; index < bytepair_special_count(get()); index++) {
            const char *name = nullptr;
            std::size_t length = 0;
            std::uint32_t id = 0;
            detail::call(bytepair_special_token, get(), index, &name, &length, &id);
            tokens.push_back({{name, length}, id});
        }
        return tokens;
    }

    // The id of a special token by its name.
    std::uint32_t special_id(std::string_view name) const {
        std::uint32_t id = 0;
        detail::call(bytepair_special_id, get(), name.data(), name.size(), &id);
        return id;
    }

    // The id of the special token with a role.
    std::optional<std::uint32_t> role(Role role) const noexcept {
        return known(bytepair_role(get(), static_cast<std::uint32_t>(role)));
    }

    const bytepair_tokenizer *get() const noexcept { return tokenizer_.get(); }

private:
    friend class Counts;
    explicit Tokenizer(bytepair_tokenizer *tokenizer) : tokenizer_(tokenizer) {}

    template <typename Function, typename... Arguments>
    static Tokenizer made(Function function, Arguments... arguments) {
        bytepair_tokenizer *tokenizer = nullptr;
        detail::call(function, arguments..., &tokenizer);
        return Tokenizer(tokenizer);
    }

    Ids encoded(std::string_view text, const bytepair_options *options) const {
        Ids ids;
        detail::call(bytepair_encode_append, get(), text.data(), text.size(), options, ids.get());
        return ids;
    }

    std::size_t counted(std::string_view text, const bytepair_options *options) const {
        std::size_t count = 0;
        detail::call(bytepair_count, get(), text.data(), text.size(), options, &count);
        return count;
    }

    static std::optional<std::uint32_t> known(std::uint32_t id) noexcept {
        return id == BYTEPAIR_NO_ID ? std::nullopt : std::optional(id);
    }

    detail::Owned<bytepair_tokenizer, bytepair_tokenizer_free> tokenizer_;
};

// The options of a training.
struct Training {
    // The 256 bytes, one id for each merge, and the special tokens.
    std::size_t vocab_size;
    std::vector<std::string_view> special_tokens = {};
    Ties ties = Ties::rustbpe;
    // Pairs with a smaller count are not merged.
    std::uint64_t min_count = 1;
    // Tokens with more bytes are not learnt; 0 stands for no limit.
    std::size_t max_token_bytes = 0;
    std::size_t threads = 1;
};

// Distinct pretokens and how often each occurs. Made by Counter::finish.
class Counts {
public:
    // Learns a tokenizer.
    Tokenizer train(const Training &training) const {
        std::vector<bytepair_text> names = detail::texts(training.special_tokens);
        bytepair_training options{training.vocab_size,
                                  names.data(),
                                  names.size(),
                                  static_cast<std::uint32_t>(training.ties),
                                  training.min_count,
                                  training.max_token_bytes,
                                  training.threads};
        return Tokenizer::made(bytepair_train, counts_.get(), &options);
    }

    const bytepair_counts *get() const noexcept { return counts_.get(); }

private:
    friend class Counter;
    explicit Counts(bytepair_counts *counts) : counts_(counts) {}
    detail::Owned<bytepair_counts, bytepair_counts_free> counts_;
};

// Counts the pretokens of texts, for training.
class Counter {
public:
    explicit Counter(const std::string &pattern, std::size_t threads = 1) {
        bytepair_counter *counter = nullptr;
        detail::call(bytepair_counter_new, pattern.c_str(), threads, &counter);
        counter_.reset(counter);
    }

    // Counts texts, each a document of its own.
    void add(std::span<const std::string_view> views) {
        std::vector<bytepair_text> texts = detail::texts(views);
        detail::call(bytepair_counter_add, counter_.get(), texts.data(), texts.size());
    }

    // Takes the counts; the counter counts nothing more.
    Counts finish() {
        bytepair_counts *counts = nullptr;
        detail::call(bytepair_counter_finish, counter_.get(), &counts);
        return Counts(counts);
    }

private:
    detail::Owned<bytepair_counter, bytepair_counter_free> counter_;
};

} // namespace bytepair

#endif // BYTEPAIR_HPP
