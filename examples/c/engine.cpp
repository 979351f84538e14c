// The program of engine.c with the header for C++20.
//
//     engine TOKENIZER PROMPT
//
//     c++ -std=c++20 engine.cpp $(pkg-config --cflags --libs bytepair) -o engine

#include <exception>
#include <iostream>
#include <span>
#include <string_view>

#include "bytepair.hpp"

int main(int argc, char **argv) try {
    if (argc != 3) {
        std::cerr << "usage: " << argv[0] << " TOKENIZER PROMPT\n";
        return 2;
    }
    bytepair::Tokenizer tokenizer = bytepair::Tokenizer::load(argv[1]);
    std::string_view prompt = argv[2];

    // Special tokens in the text of a user are ordinary text; a text begins with its token.
    auto begin = tokenizer.role(bytepair::Role::bos);
    bytepair::Options options = tokenizer.options(bytepair::Special::text, {}, begin);
    bytepair::Ids ids = tokenizer.encode(prompt, options);

    // The stand-in for a model says the prompt again.
    bytepair::Decoder decoder = tokenizer.decoder();
    for (std::uint32_t id : std::span(ids).subspan(begin ? 1 : 0)) {
        std::cout << decoder.push(id) << std::flush;
    }
    std::cout << decoder.flush();
    return 0;
} catch (const std::exception &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
