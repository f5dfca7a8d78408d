#include "command_line.hpp"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <forebay/base/error.hpp>

namespace forebay::store_bench {

void add_bytes(CLI::App& app, const std::string& name, byte_count& to, const std::string& help) {
  app.add_option_function<std::string>(
         name,
         [&to, name](const std::string& text) {
           try {
             to = parse_bytes(text);
           } catch (const usage_error& e) {
             throw CLI::ValidationError(name, e.what());
           }
         },
         help)
      ->type_name("SIZE");
}

byte_count free_disk(const std::filesystem::path& directory, const std::string& option) {
  struct statvfs space {};
  if (::statvfs(directory.c_str(), &space) != 0) {
    throw usage_error(fmt::format("{} {}: no such directory", option, directory.string()));
  }
  return byte_count{space.f_bavail} * space.f_frsize;
}

}  // namespace forebay::store_bench
