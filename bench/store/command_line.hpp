#pragma once

#include <filesystem>
#include <string>

#include <CLI/CLI.hpp>

#include <forebay/base/bytes.hpp>

namespace forebay::store_bench {

/// An option that takes a size such as 64MiB; `to` keeps its value when it is not given.
void add_bytes(CLI::App& app, const std::string& name, byte_count& to, const std::string& help);

/// What an unprivileged user may still write there. \throws usage_error naming the option when there is no such
/// directory.
[[nodiscard]] byte_count free_disk(const std::filesystem::path& directory, const std::string& option);

}  // namespace forebay::store_bench
