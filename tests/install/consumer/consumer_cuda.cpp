#include <forebay/cuda.hpp>
#include <forebay/forebay.hpp>

// Compiles and links the device without needing one: whether there is one is not this test's question.
int main() { return forebay::parse_bytes("1KiB") == 1024 ? 0 : 1; }
