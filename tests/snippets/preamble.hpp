#pragma once

// What a fragment of code in a README may use without saying so.
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <forebay/forebay.hpp>
