#include "layering.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>

namespace layering {
namespace {

namespace fs = std::filesystem;

// The rows: a module may include those of lower rows and itself. The umbrella forebay.hpp stands above all but
// testing/.
constexpr std::size_t longest_file = 300;

std::optional<int> row_of(std::string_view module) {
  static const std::map<std::string_view, int> rows{
      {"base", 0},       {"plan", 10},       {"telemetry", 10},   {"memory", 20},   {"device", 20},
      {"io", 20},        {"store", 30},      {"residency", 40},   {"transfer", 50}, {"engine", 60},
      {"optimizer", 70}, {"checkpoint", 70}, {"forebay.hpp", 75}, {"testing", 80},
  };
  const auto found = rows.find(module);
  return found == rows.end() ? std::nullopt : std::optional<int>(found->second);
}

enum class place { public_header, source, user };

struct source_file {
  fs::path path;  // relative to the root
  place where;
  std::string module;  // of include/ and src/
  std::vector<std::string> lines;
};

struct include_line {
  std::string target;
  bool quoted = false;
};

std::optional<include_line> parse_include(std::string_view line) {
  const auto skip = [&] { line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size())); };
  skip();
  if (line.empty() || line.front() != '#') {
    return std::nullopt;
  }
  line.remove_prefix(1);
  skip();
  constexpr std::string_view word = "include";
  if (line.substr(0, word.size()) != word) {
    return std::nullopt;
  }
  line.remove_prefix(word.size());
  skip();
  if (line.empty() || (line.front() != '<' && line.front() != '"')) {
    return std::nullopt;
  }
  const bool quoted = line.front() == '"';
  const std::size_t end = line.find(quoted ? '"' : '>', 1);
  if (end == std::string_view::npos) {
    return std::nullopt;
  }
  return include_line{std::string(line.substr(1, end - 1)), quoted};
}

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](std::string_view p) { return text.rfind(p, 0) == 0; });
}

// The C++ library has no dots in its names; POSIX lives in sys/ and in these.
bool is_standard(std::string_view target) {
  constexpr std::array<std::string_view, 8> posix{"unistd.h",  "fcntl.h", "errno.h",  "signal.h",
                                                  "pthread.h", "sched.h", "dirent.h", "poll.h"};
  return target.find('.') == std::string_view::npos || starts_with_any(target, {"sys/"}) ||
         std::find(posix.begin(), posix.end(), target) != posix.end();
}

bool is_detail(std::string_view target) { return target.find("/detail/") != std::string_view::npos; }

// <module>/x.hpp -> <module>; x.hpp -> x.hpp. CUDA is a part of the devices' module that lives in a library of its own.
std::string module_of_path(std::string_view path) {
  const std::string first(path.substr(0, path.find('/')));
  return first == "cuda" || first == "cuda.hpp" ? "device" : first;
}

std::optional<std::string> module_of_include(std::string_view target) {
  constexpr std::string_view prefix = "forebay/";
  if (target.substr(0, prefix.size()) != prefix) {
    return std::nullopt;
  }
  return module_of_path(target.substr(prefix.size()));
}

std::vector<std::string> read_lines(const fs::path& file) {
  std::ifstream in(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<source_file> read_tree(const fs::path& root) {
  std::vector<source_file> files;
  const auto read_folder = [&](const fs::path& folder, place where) {
    if (!fs::exists(root / folder)) {
      return;
    }
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension().string();
      if (!entry.is_regular_file() || (extension != ".hpp" && extension != ".cpp" && extension != ".cu")) {
        continue;
      }
      source_file file;
      file.path = entry.path().lexically_relative(root);
      file.where = where;
      file.module = module_of_path(entry.path().lexically_relative(root / folder).generic_string());
      file.lines = read_lines(entry.path());
      files.push_back(std::move(file));
    }
  };
  read_folder(fs::path("include") / "forebay", place::public_header);
  read_folder("src", place::source);
  for (const char* folder : {"tests", "bench", "examples"}) {
    read_folder(folder, place::user);
  }
  std::sort(files.begin(), files.end(), [](const source_file& a, const source_file& b) { return a.path < b.path; });
  return files;
}

std::string check_module_include(const source_file& file, const include_line& include) {
  const std::optional<std::string> target = module_of_include(include.target);
  const std::optional<int> own = row_of(file.module);
  if (!own) {
    return "module '" + file.module + "' has no row";
  }
  if (!target) {
    return {};
  }
  const std::optional<int> other = row_of(*target);
  if (!other) {
    return "includes <" + include.target + ">, whose module has no row";
  }
  if (*target != file.module && *other >= *own) {
    return "module '" + file.module + "' (row " + std::to_string(*own / 10) + ") includes <" + include.target +
           "> of row " + std::to_string(*other / 10);
  }
  if (is_detail(include.target) && *target != file.module) {
    return "module '" + file.module + "' includes <" + include.target + ">, a detail of another";
  }
  return {};
}

std::string check_public_include(const source_file& file, const include_line& include) {
  if (include.quoted) {
    return "a public header includes \"" + include.target + "\"; write <forebay/...>";
  }
  const bool cuda = file.path == fs::path("include") / "forebay" / "cuda.hpp" ||
                    file.path == fs::path("include") / "forebay" / "device" / "cuda_device.hpp";
  if (module_of_include(include.target) || is_standard(include.target) ||
      (cuda && starts_with_any(include.target, {"cuda_runtime", "cuda_"}))) {
    return {};
  }
  return "a public header includes the third-party header <" + include.target + ">";
}

std::string check_user_include(const fs::path& root, const source_file& file, const include_line& include) {
  const bool test = *file.path.begin() == "tests";
  if (module_of_include(include.target)) {
    if (!fs::exists(root / "include" / include.target)) {
      return "includes <" + include.target + ">, which is not a public header";
    }
    return is_detail(include.target) && !test ? "includes <" + include.target + ">, a detail" : std::string{};
  }
  // A quoted name is found beside the file or from the top of its folder; in src/ it must not be found.
  const fs::path beside = (root / file.path).parent_path() / include.target;
  const fs::path normal = fs::weakly_canonical(beside).lexically_relative(fs::weakly_canonical(root));
  if (*normal.begin() == "src" && fs::exists(beside)) {
    return "includes \"" + include.target + "\", a private header";
  }
  if (include.quoted && !fs::exists(beside) && fs::exists(root / "src" / include.target)) {
    return "includes \"" + include.target + "\", a private header";
  }
  return {};
}

// src/<module>/ may name its own private headers in quotes, from its folder or from src/.
std::string check_private_include(const fs::path& root, const source_file& file, const include_line& include) {
  if (!include.quoted) {
    return {};
  }
  const fs::path beside = (root / file.path).parent_path() / include.target;
  const fs::path found = fs::exists(beside) ? beside : root / "src" / include.target;
  const fs::path relative = fs::weakly_canonical(found).lexically_relative(fs::weakly_canonical(root / "src"));
  if (relative.empty() || module_of_path(relative.generic_string()) != file.module) {
    return "module '" + file.module + "' includes \"" + include.target + "\", private to another";
  }
  return {};
}

void check_file(const fs::path& root, const source_file& file, findings& result) {
  const auto at = [&](std::size_t line) { return file.path.string() + ":" + std::to_string(line) + ": "; };
  bool guarded = false;
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    guarded = guarded || file.lines[i].rfind("#pragma once", 0) == 0;
    const std::optional<include_line> include = parse_include(file.lines[i]);
    if (!include) {
      continue;
    }
    std::vector<std::string> wrong;
    if (file.where == place::user) {
      wrong.push_back(check_user_include(root, file, *include));
    } else {
      wrong.push_back(check_module_include(file, *include));
      wrong.push_back(file.where == place::public_header ? check_public_include(file, *include)
                                                         : check_private_include(root, file, *include));
    }
    for (const std::string& text : wrong) {
      if (!text.empty()) {
        result.breaches.push_back(at(i + 1) + text);
      }
    }
  }
  if (file.path.extension() == ".hpp" && !guarded) {
    result.breaches.push_back(at(1) + "no #pragma once");
  }
  if (file.lines.size() > longest_file) {
    result.remarks.push_back(at(file.lines.size()) + "more than " + std::to_string(longest_file) + " lines");
  }
}

void check_readmes(const fs::path& root, findings& result) {
  std::vector<fs::path> folders{"", "src", "tests", "bench", "examples"};
  if (fs::exists(root / "include" / "forebay")) {
    for (const fs::directory_entry& entry : fs::directory_iterator(root / "include" / "forebay")) {
      if (entry.is_directory()) {
        folders.push_back(entry.path().lexically_relative(root));
      }
    }
  }
  for (const fs::path& folder : folders) {
    if (fs::exists(root / folder) && !fs::exists(root / folder / "README.md")) {
      result.breaches.push_back((folder / "README.md").string() + ": missing");
    }
  }
}

}  // namespace

findings check_tree(const fs::path& root) {
  findings result;
  for (const source_file& file : read_tree(root)) {
    check_file(root, file, result);
  }
  check_readmes(root, result);
  return result;
}

std::vector<std::string> check_quoted_example(const fs::path& readme, const fs::path& example) {
  const auto read = [](const fs::path& file) {
    std::ifstream in(file);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const std::string text = read(example);
  const std::string block = "```cpp\n" + text + "```\n";
  if (text.empty() || read(readme).find(block) == std::string::npos) {
    return {readme.string() + ": its ```cpp block is not the text of " + example.string()};
  }
  return {};
}

}  // namespace layering
