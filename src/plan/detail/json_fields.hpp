#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace forebay::plan::detail {

using json = nlohmann::ordered_json;

/// Checks one JSON value after the other, and knows whose they are: messages begin with `whose` ("the machine's",
/// "line 3: the trace's") and the value's name. All members throw usage_error with both, what is wanted, and what is
/// there.
class json_checker {
 public:
  explicit json_checker(std::string whose) : whose_(std::move(whose)) {}

  [[noreturn]] void refuse(std::string_view name, std::string_view wanted, const json& found) const;
  [[noreturn]] void refuse(std::string_view name, std::string_view why) const;

  /// 0 to `most`.
  template <typename Integer>
  [[nodiscard]] Integer whole(const json& v, std::string_view name,
                              Integer most = std::numeric_limits<Integer>::max()) const {
    return static_cast<Integer>(whole_up_to(v, name, most));
  }
  /// Below `count`, which is of things called `plural`.
  [[nodiscard]] std::uint32_t index(const json& v, std::string_view name, std::size_t count,
                                    std::string_view plural) const;
  [[nodiscard]] double positive(const json& v, std::string_view name) const;
  [[nodiscard]] double not_negative(const json& v, std::string_view name) const;
  [[nodiscard]] std::string text(const json& v, std::string_view name) const;
  [[nodiscard]] bool flag(const json& v, std::string_view name) const;
  /// Calls `each(element, its name)`.
  template <typename Each>
  void list(const json& v, std::string_view name, Each&& each) const {
    if (!v.is_array()) {
      refuse(name, "a list", v);
    }
    for (std::size_t i = 0; i < v.size(); ++i) {
      each(v[i], fmt::format("{}[{}]", name, i));
    }
  }
  /// \throws unsupported_error naming the version when it is not `supported`; usage_error when it is missing (null).
  void version(const json* v, std::string_view name, int supported) const;

 private:
  [[nodiscard]] std::uint64_t whole_up_to(const json& v, std::string_view name, std::uint64_t most) const;

  std::string whose_;
};

/// One JSON object with the path that names it in messages.
class json_fields {
 public:
  /// \throws usage_error when `value` is not an object or has other fields than the known ones.
  json_fields(const json_checker& check, const json& value, std::string path,
              std::initializer_list<std::string_view> known);

  [[nodiscard]] const json_checker& check() const { return check_; }
  [[nodiscard]] std::string name_of(std::string_view key) const;
  [[nodiscard]] const json* find(std::string_view key) const;
  /// \throws usage_error when there is no such field.
  [[nodiscard]] const json& at(std::string_view key) const;

  // These leave `to` as it is when the field is left out.
  void rate(std::string_view key, double& to) const;  ///< above zero; null: unlimited
  void positive(std::string_view key, double& to) const;
  void text(std::string_view key, std::string& to) const;
  void flag(std::string_view key, bool& to) const;
  template <typename Integer>
  void whole(std::string_view key, Integer& to) const {
    if (const json* v = find(key); v != nullptr) {
      to = check_.whole<Integer>(*v, name_of(key));
    }
  }
  template <typename Each>
  void list(std::string_view key, Each&& each) const {
    if (const json* v = find(key); v != nullptr) {
      check_.list(*v, name_of(key), std::forward<Each>(each));
    }
  }

 private:
  const json_checker& check_;
  const json& value_;
  std::string path_;
};

}  // namespace forebay::plan::detail
