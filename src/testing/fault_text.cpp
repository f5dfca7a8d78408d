// Scripts of faults as text.
#include <array>
#include <charconv>
#include <cstring>

#include <fmt/format.h>

#include <forebay/base/error.hpp>
#include <forebay/testing/fault_script.hpp>

namespace forebay::testing {
namespace {

using io::operation_kind;
using service = io::interceptor::service;

constexpr int largest_errno = 200;

struct unit {
  std::string_view name;
  std::int64_t nanoseconds;
};
constexpr std::array<unit, 4> units{{{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}}};

struct service_name {
  std::string_view name;
  service what;
};
constexpr std::array<service_name, 3> services{
    {{"ring", service::ring}, {"memory", service::registered_memory}, {"files", service::registered_files}}};

/// The words of one line, taken one after the other.
class line_words {
 public:
  line_words(std::string_view line, std::size_t number) : rest_(line.substr(0, line.find('#'))), number_(number) {}

  /// The next word; empty at the end.
  std::string_view next() {
    const std::size_t begin = rest_.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) {
      return {};
    }
    const std::size_t end = rest_.find_first_of(" \t\r", begin);
    const std::string_view word = rest_.substr(begin, end == std::string_view::npos ? end : end - begin);
    rest_ = end == std::string_view::npos ? std::string_view{} : rest_.substr(end);
    return word;
  }

  [[noreturn]] void refuse(std::string_view word, std::string_view why) const {
    throw usage_error(fmt::format("fault script, line {}: {} {}", number_,
                                  word.empty() ? "the end of the line" : fmt::format("'{}'", word), why));
  }

  template <typename Number>
  Number number(std::string_view word, std::string_view why) const {
    Number value{};
    const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (failure != std::errc{} || end != word.data() + word.size()) {
      refuse(word, why);
    }
    return value;
  }

  std::uint64_t count(std::string_view why) {
    const auto n = number<std::uint64_t>(next(), why);
    if (n == 0) {
      refuse("0", why);
    }
    return n;
  }

  int index(std::string_view why) {
    const std::string_view word = next();
    const int n = number<int>(word, why);
    if (n < 0) {
      refuse(word, why);
    }
    return n;
  }

 private:
  std::string_view rest_;
  std::size_t number_;
};

int parse_errno(line_words& words) {
  const std::string_view word = words.next();
  for (int e = 1; e < largest_errno; ++e) {
    const char* name = strerrorname_np(e);
    if (name != nullptr && word == name) {
      return e;
    }
  }
  words.refuse(word, "is not the name of an errno, such as EIO");
}

struct number_with_unit {
  std::string_view number;
  std::int64_t nanoseconds = 0;  ///< of the unit; 0: none given
};

number_with_unit split_unit(std::string_view text) {
  const std::size_t at = text.find_first_not_of("0123456789.");
  if (at != std::string_view::npos) {
    for (const unit& u : units) {
      if (text.substr(at) == u.name) {
        return {text.substr(0, at), u.nanoseconds};
      }
    }
  }
  return {text, 0};
}

duration scaled(const line_words& words, std::string_view word, const number_with_unit& part) {
  constexpr std::string_view why = "is not a time, such as 20ms";
  if (part.nanoseconds == 0) {
    words.refuse(word, why);
  }
  return duration(words.number<std::int64_t>(part.number, why) * part.nanoseconds);
}

duration parse_time(line_words& words) {
  const std::string_view word = words.next();
  return scaled(words, word, split_unit(word));
}

void parse_range(line_words& words, fault& f) {
  const std::string_view word = words.next();
  const std::size_t dots = word.find("..");
  const number_with_unit most = split_unit(dots == std::string_view::npos ? word : word.substr(dots + 2));
  f.most = scaled(words, word, most);
  f.least = f.most;
  if (dots != std::string_view::npos) {
    number_with_unit least = split_unit(word.substr(0, dots));
    least.nanoseconds = least.nanoseconds == 0 ? most.nanoseconds : least.nanoseconds;
    f.least = scaled(words, word, least);
  }
  if (f.least > f.most) {
    words.refuse(word, "starts behind its end");
  }
}

void parse_refusal(line_words& words, fault& f) {
  const std::string_view word = words.next();
  for (const service_name& s : services) {
    if (word == s.name) {
      f.service = s.what;
      f.error_number = parse_errno(words);
      return;
    }
  }
  words.refuse(word, "can't be refused: 'ring', 'memory' or 'files'");
}

/// What is struck, with what belongs to it.
fault parse_effect(line_words& words, std::string_view word) {
  fault f;
  if (word == "fail") {
    f.what = fault_effect::fail;
    f.error_number = parse_errno(words);
  } else if (word == "delay") {
    f.what = fault_effect::delay;
    parse_range(words, f);
  } else if (word == "reorder") {
    f.what = fault_effect::reorder;
    f.later = words.count("is not a number of operations");
    if (const std::string_view within = words.next(); within != "within") {
      words.refuse(within, "stands where 'within' and a time must");
    }
    f.most = parse_time(words);
  } else if (word == "shorten") {
    f.what = fault_effect::shorten;
  } else if (word == "underreport") {
    f.what = fault_effect::underreport;
  } else if (word == "tear") {
    f.what = fault_effect::tear;
  } else if (word == "flip") {
    f.what = fault_effect::flip_bit;
  } else if (word == "stale") {
    const std::string_view which = words.next();
    if (which != "read" && which != "completion") {
      words.refuse(which, "can't be stale: 'read' or 'completion'");
    }
    f.what = which == "read" ? fault_effect::stale_read : fault_effect::stale_completion;
  } else if (word == "refuse") {
    f.what = fault_effect::refuse;
    parse_refusal(words, f);
  } else {
    words.refuse(word, "is no fault: fail, delay, reorder, shorten, underreport, tear, stale, flip or refuse");
  }
  return f;
}

void parse_condition(line_words& words, std::string_view word, fault& f) {
  if (word == "read" || word == "write") {
    f.where.kind = word == "read" ? operation_kind::read : operation_kind::write;
  } else if (word == "path") {
    f.where.path = words.index("is not a path's index");
  } else if (word == "file") {
    f.where.file = words.index("is not a descriptor");
  } else if (word == "nth") {
    f.when.first = words.count("is not a number from 1");
    f.when.every = 1;
    f.when.most = 1;
  } else if (word == "from") {
    f.when.first = words.count("is not a number from 1");
  } else if (word == "every") {
    f.when.every = words.count("is not a number from 1");
  } else if (word == "most") {
    f.when.most = words.count("is not a number from 1");
  } else if (word == "chance") {
    const std::string_view chance = words.next();
    f.when.probability = words.number<double>(chance, "is not a chance between 0 and 1");
    if (!(f.when.probability >= 0.0 && f.when.probability <= 1.0)) {
      words.refuse(chance, "is not a chance between 0 and 1");
    }
  } else {
    words.refuse(word, "is no condition: read, write, path, file, nth, from, every, most or chance");
  }
}

std::string time_text(duration d) {
  for (std::size_t i = units.size(); i-- > 1;) {
    if (d.count() % units[i].nanoseconds == 0) {
      return fmt::format("{}{}", d.count() / units[i].nanoseconds, units[i].name);
    }
  }
  return fmt::format("{}ns", d.count());
}

std::string effect_text(const fault& f) {
  switch (f.what) {
    case fault_effect::delay:
      return fmt::format("delay {}..{}", time_text(f.least), time_text(f.most));
    case fault_effect::reorder:
      return fmt::format("reorder {} within {}", f.later, time_text(f.most));
    case fault_effect::shorten:
      return "shorten";
    case fault_effect::underreport:
      return "underreport";
    case fault_effect::fail:
      return fmt::format("fail {}", strerrorname_np(f.error_number));
    case fault_effect::tear:
      return "tear";
    case fault_effect::stale_read:
      return "stale read";
    case fault_effect::stale_completion:
      return "stale completion";
    case fault_effect::flip_bit:
      return "flip";
    case fault_effect::refuse:
      break;
  }
  return fmt::format("refuse {} {}", services.at(static_cast<std::size_t>(f.service)).name,
                     strerrorname_np(f.error_number));
}

std::string condition_text(const fault& f) {
  std::string text;
  const fault_trigger none;
  if (f.where.kind) {
    text += *f.where.kind == operation_kind::read ? " read" : " write";
  }
  if (f.where.path >= 0) {
    text += fmt::format(" path {}", f.where.path);
  }
  if (f.where.file >= 0) {
    text += fmt::format(" file {}", f.where.file);
  }
  if (f.when.most == 1 && f.when.every == 1) {
    text += fmt::format(" nth {}", f.when.first);
  } else {
    text += f.when.first == none.first ? "" : fmt::format(" from {}", f.when.first);
    text += f.when.every == none.every ? "" : fmt::format(" every {}", f.when.every);
    text += f.when.most == none.most ? "" : fmt::format(" most {}", f.when.most);
  }
  return text + (f.when.probability == none.probability ? "" : fmt::format(" chance {}", f.when.probability));
}

}  // namespace

fault_script parse_fault_script(std::string_view text) {
  fault_script script;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    line_words words(text.substr(0, end), number);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    const std::string_view effect = words.next();
    if (effect.empty()) {
      continue;
    }
    fault f = parse_effect(words, effect);
    for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
      parse_condition(words, word, f);
    }
    script.faults.push_back(f);
  }
  return script;
}

std::string to_text(const fault_script& script) {
  std::string text;
  for (const fault& f : script.faults) {
    text += effect_text(f) + condition_text(f) + "\n";
  }
  return text;
}

}  // namespace forebay::testing
