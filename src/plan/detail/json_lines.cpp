#include "plan/detail/json_lines.hpp"

#include <istream>
#include <ostream>

#include <fmt/format.h>

#include <forebay/base/error.hpp>

namespace forebay::plan::detail {
namespace {

[[noreturn]] void stream_failed(std::string_view file) {
  throw error(fmt::format("{} cannot be read: the stream has failed", file));
}

}  // namespace

void for_each_json_line(std::istream& in, std::string_view file, std::string_view what,
                        const std::function<void(const json&, const json_checker&)>& each) {
  if (!in) {
    stream_failed(file);
  }
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) {
      continue;
    }
    json value;
    try {
      value = json::parse(line);
    } catch (const json::exception& e) {
      throw usage_error(fmt::format("{}:{}: the {} is not JSON: {}", file, number, what, e.what()));
    }
    each(value, json_checker(fmt::format("{}:{}: the {}'s", file, number, what)));
  }
  if (in.bad()) {
    stream_failed(file);
  }
}

void write_json_line(std::ostream& out, const json& value, std::string_view what) {
  out << value.dump(-1, ' ', false, json::error_handler_t::replace) << std::endl;
  if (!out) {
    throw error(fmt::format("the {} cannot be written: the stream has failed", what));
  }
}

}  // namespace forebay::plan::detail
