#include <iostream>

#include "run.hpp"

int main(int argc, char** argv) { return plan_model::run({argv + 1, argv + argc}, std::cout, std::cerr); }
