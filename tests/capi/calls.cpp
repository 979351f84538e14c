// Each call of bytepair.hpp; FOLDER is that of calls.c.

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <type_traits>

#include "bytepair.hpp"

using namespace std::string_view_literals;

#define CHECK(condition)                                                                   \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
            std::exit(1);                                                                  \
        }                                                                                  \
    } while (0)

static_assert(std::is_nothrow_move_constructible_v<bytepair::Tokenizer>);
static_assert(!std::is_copy_constructible_v<bytepair::Tokenizer>);
static_assert(std::is_convertible_v<bytepair::Ids, std::span<const std::uint32_t>>);

template <typename Call> bytepair_code failed(Call call) {
    try {
        call();
    } catch (const bytepair::Error &error) {
        CHECK(std::string_view(error.what()).size() > 5);
        return error.code();
    }
    return BYTEPAIR_CODE_OK;
}

static bool are(std::span<const std::uint32_t> ids, std::initializer_list<std::uint32_t> expected) {
    return std::equal(ids.begin(), ids.end(), expected.begin(), expected.end());
}

static void loading(const std::string &folder) {
    std::ifstream file(folder + "/tokenizer.json", std::ios::binary);
    std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
    CHECK(bytepair::Tokenizer::from_bytes(bytes).vocab_size() == 263);
    std::array<bytepair::SpecialToken, 1> special{{{"<s>", 260}}};
    auto ranks = bytepair::Tokenizer::load_ranks(folder + "/vocab.tiktoken", "gpt4", special);
    CHECK(ranks.special_id("<s>") == 260);
    CHECK(failed([] { bytepair::Tokenizer::load("no such file"); }) == BYTEPAIR_CODE_FILE);
}

static void vocabulary(const bytepair::Tokenizer &tokenizer) {
    CHECK(tokenizer.vocab_size() == 263);
    CHECK(tokenizer.token_bytes(259) == "hello");
    CHECK(failed([&] { tokenizer.token_bytes(263); }) == BYTEPAIR_CODE_UNKNOWN_ID);
    CHECK(tokenizer.token_id("he") == 256 && !tokenizer.token_id("<s>"));
    CHECK(tokenizer.special_tokens().size() == 3);
    CHECK(tokenizer.special_tokens()[1].name == "</s>");
    CHECK(failed([&] { tokenizer.special_id("<t>"); }) == BYTEPAIR_CODE_SPECIAL_TOKEN);
    CHECK(tokenizer.role(bytepair::Role::bos) == 260 && tokenizer.role(bytepair::Role::eos) == 261);
    CHECK(!tokenizer.role(bytepair::Role::pad));
    CHECK(tokenizer.role(bytepair::Role::end_of_turn) == 262);
}

static void encoding(const bytepair::Tokenizer &tokenizer) {
    bytepair::Ids ids = tokenizer.encode("hellohe");
    CHECK(are(ids, {259, 256}) && ids[1] == 256 && !ids.empty());
    bytepair::Ids moved = std::move(ids);
    CHECK(moved.size() == 2);
    moved = tokenizer.encode("");
    CHECK(moved.empty() && are(moved, {}));

    auto all = tokenizer.options(bytepair::Special::all, {}, 260, 261);
    CHECK(are(tokenizer.encode("he<s>"sv.substr(0, 5), all), {260, 256, 260, 261}));
    CHECK(tokenizer.count("he<s>", all) == 4 && tokenizer.count("he<s>") == 4);
    std::array names{"<s>"sv};
    auto only = tokenizer.options(bytepair::Special::only, names);
    CHECK(are(tokenizer.encode("<s>", only), {260}));
    auto error = tokenizer.options(bytepair::Special::error);
    CHECK(failed([&] { tokenizer.encode("<s>", error); }) == BYTEPAIR_CODE_SPECIAL_TOKEN);
    CHECK(failed([&] { tokenizer.encode("\xff"); }) == BYTEPAIR_CODE_TEXT_NOT_UTF8);

    std::string_view text = "hello hello";
    CHECK(tokenizer.truncate(text, 2) == "hello " && tokenizer.truncate(text, 1, true) == "hello");
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++) {
        threads.emplace_back([&] { CHECK(are(tokenizer.encode("hello", only), {259})); });
    }
    for (std::thread &thread : threads) thread.join();
}

static void decoding(const bytepair::Tokenizer &tokenizer) {
    CHECK(tokenizer.decode(tokenizer.encode("hello h\u00e9")) == "hello h\u00e9");
    CHECK(tokenizer.decode({}).empty());
    bytepair::Decoder decoder = tokenizer.decoder();
    CHECK(decoder.push(259) == "hello" && decoder.push(0xC3).empty());
    CHECK(decoder.push(0xA9) == "\u00e9" && decoder.flush().empty());
    CHECK(decoder.push(0xE2).empty() && decoder.flush() == "\ufffd");
    const std::string_view stops[] = {"lo!", "o"};
    decoder.stop(stops);
    CHECK(!decoder.stopped() && decoder.push(259) == "hell" && decoder.stopped() == 1u);
    CHECK(failed([&] { decoder.push(263); }) == BYTEPAIR_CODE_UNKNOWN_ID);
}

static void rendering(const std::string &folder) {
    auto tokenizer = bytepair::Tokenizer::load(folder + "/tokenizer.bytepair");
    const bytepair::Segment parts[] = {260u, "he"sv, {"llo<s>"sv, true}, {262u, true}};
    const bytepair::Rendered rendered = tokenizer.render(parts);
    CHECK(are(rendered.ids, {260, 259, '<', 's', '>', 262}));
    CHECK(rendered.mask == (std::vector<std::uint8_t>{0, 1, 1, 1, 1, 1}));
    CHECK(tokenizer.render({}).ids.empty());
}

static void training(const std::string &folder) {
    bytepair::Counter counter("gpt4");
    std::array texts{"hello hello"sv, "hello"sv};
    counter.add(texts);
    bytepair::Counts counts = counter.finish();
    CHECK(failed([&] { counter.finish(); }) == BYTEPAIR_CODE_ARGUMENT);
    auto tokenizer = counts.train({.vocab_size = 261, .special_tokens = {"<s>"}});
    CHECK(are(tokenizer.encode("hello"), {259}) && tokenizer.special_id("<s>") == 260);
    tokenizer.save(folder + "/trained-too.bytepair");
    CHECK(bytepair::Tokenizer::load(folder + "/trained-too.bytepair").vocab_size() == 261);
    CHECK(failed([&] { counts.train({.vocab_size = 1}); }) == BYTEPAIR_CODE_VOCABULARY);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    std::string folder = argv[1];
    auto tokenizer = bytepair::Tokenizer::load(folder + "/tokenizer.bytepair");
    loading(folder);
    vocabulary(tokenizer);
    encoding(tokenizer);
    decoding(tokenizer);
    rendering(argv[1]);
    training(folder);
    std::puts("all calls");
    return 0;
}
