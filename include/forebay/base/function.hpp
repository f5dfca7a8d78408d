#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace forebay {

template <typename Signature>
class unique_function;

/// A move-only callable wrapper (C++23's std::move_only_function is not in our compilers). Empty by default; calling an
/// empty one is undefined. One heap allocation per non-empty wrapper.
template <typename Result, typename... Args>
class unique_function<Result(Args...)> {
 public:
  unique_function() = default;
  unique_function(std::nullptr_t) {}  // NOLINT(google-explicit-constructor): mirrors std::function

  template <typename Callable>
  requires(!std::same_as<std::remove_cvref_t<Callable>, unique_function> &&
           std::is_invocable_r_v<Result, Callable&, Args...>)
      unique_function(Callable&& callable)  // NOLINT(google-explicit-constructor): mirrors std::function
      : callable_(std::make_unique<holder<std::decay_t<Callable>>>(std::forward<Callable>(callable))) {}

  Result operator()(Args... args) { return callable_->call(std::forward<Args>(args)...); }
  [[nodiscard]] explicit operator bool() const noexcept { return callable_ != nullptr; }

 private:
  struct base {
    base() = default;
    base(const base&) = delete;
    base& operator=(const base&) = delete;
    virtual ~base() = default;
    virtual Result call(Args... args) = 0;
  };

  template <typename Callable>
  struct holder final : base {
    template <typename From>
    explicit holder(From&& from) : callable(std::forward<From>(from)) {}
    Result call(Args... args) override { return static_cast<Result>(callable(std::forward<Args>(args)...)); }
    Callable callable;
  };

  std::unique_ptr<base> callable_;
};

}  // namespace forebay
