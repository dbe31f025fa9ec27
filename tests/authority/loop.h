// A loop for a test: runs coroutines to their end.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <optional>
#include <utility>

namespace tally::gateway {

template <typename T>
T Await(boost::asio::io_context& loop, boost::asio::awaitable<T> work) {
  std::optional<T> result;
  boost::asio::co_spawn(
      loop, [&]() -> boost::asio::awaitable<void> { result.emplace(co_await std::move(work)); },
      [](std::exception_ptr error) {
        if (error) std::rethrow_exception(error);
      });
  loop.restart();
  loop.run();
  return std::move(*result);
}

}  // namespace tally::gateway
