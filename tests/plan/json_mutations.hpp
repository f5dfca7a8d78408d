#pragma once

#include <algorithm>
#include <cctype>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <forebay/base/error.hpp>

namespace forebay::plan::test {

/// "/steps/0/accesses" as messages write it: "steps[0].accesses".
inline std::string name_of(const nlohmann::json::json_pointer& where) {
  std::string name;
  std::string part;
  const auto append = [&] {
    if (part.empty()) {
      return;
    }
    const bool index = std::isdigit(static_cast<unsigned char>(part.front())) != 0;
    name += index ? "[" + part + "]" : (name.empty() ? part : "." + part);
    part.clear();
  };
  for (const char c : where.to_string()) {
    if (c == '/') {
      append();
    } else {
      part += c;
    }
  }
  append();
  return name;
}

/// Every value below the root, containers included.
inline std::vector<nlohmann::json::json_pointer> all_values(const nlohmann::json& j) {
  std::vector<nlohmann::json::json_pointer> all;
  const std::function<void(const nlohmann::json&, const nlohmann::json::json_pointer&)> visit =
      [&](const nlohmann::json& v, const nlohmann::json::json_pointer& at) {
        if (!at.empty()) {
          all.push_back(at);
        }
        if (!v.is_structured()) {
          return;  // items() of a number would be itself
        }
        for (const auto& [key, below] : v.items()) {
          visit(below, v.is_array() ? at / std::stoul(key) : at / key);
        }
      };
  visit(j, nlohmann::json::json_pointer());
  return all;
}

/// What is never right in the place of `good`.
inline std::vector<nlohmann::json> wrong_values(const nlohmann::json& good) {
  std::vector<nlohmann::json> wrong{nullptr, true, -1, -0.5};
  if (!good.is_string()) {
    wrong.push_back("x");
  }
  if (!good.is_number()) {
    wrong.push_back(7);
  }
  if (!good.is_object()) {
    wrong.push_back({{"x", 1}});
  }
  if (!good.is_array()) {
    wrong.push_back(nlohmann::json::array({good}));
  }
  if (good.is_number_unsigned()) {
    wrong.push_back(1.5);
    wrong.push_back(18446744073709551616.0);  // 2^64
  }
  return wrong;
}

using line_reader = std::function<void(const std::string& text)>;

/// That `text` is refused by a message with `named` in it. A version may be refused as unsupported.
inline void expect_refused(const line_reader& read, const std::string& text, const std::string& named) {
  try {
    read(text);
    ADD_FAILURE() << "was taken: " << text;
  } catch (const usage_error& e) {
    EXPECT_NE(std::string(e.what()).find(named), std::string::npos) << text << '\n' << e.what();
  } catch (const unsupported_error& e) {
    EXPECT_NE(std::string(e.what()).find(named), std::string::npos) << text << '\n' << e.what();
    EXPECT_NE(named.find("forebay_"), std::string::npos) << "only versions are unsupported: " << e.what();
  }
}

/// That a reader which takes `good` names each value of it that is wrong, every field that is missing and every one
/// that is too many, and takes no line that is cut short.
inline void expect_every_mutation_named(const line_reader& read, const nlohmann::json& good,
                                        const std::vector<std::string>& optional) {
  read(good.dump());
  for (const nlohmann::json::json_pointer& at : all_values(good)) {
    for (const nlohmann::json& wrong : wrong_values(good.at(at))) {
      nlohmann::json bad = good;
      bad.at(at) = wrong;
      expect_refused(read, bad.dump(), name_of(at) + " ");
    }
    nlohmann::json bad = good;
    nlohmann::json& holder = bad.at(at.parent_pointer());
    if (holder.is_object()) {
      holder.erase(at.back());
      if (std::find(optional.begin(), optional.end(), at.back()) == optional.end()) {
        expect_refused(read, bad.dump(), name_of(at) + " is missing");
      } else {
        read(bad.dump());
      }
    }
    if (good.at(at).is_object()) {
      bad = good;
      bad.at(at)["speed"] = 1;
      expect_refused(read, bad.dump(), name_of(at / "speed") + " is not known");
    }
  }
  const std::string line = good.dump();
  for (std::size_t length = 1; length < line.size(); ++length) {
    expect_refused(read, line.substr(0, length), "not JSON");
  }
}

}  // namespace forebay::plan::test
