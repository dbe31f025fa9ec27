// One client on our own standard streams, in both eras: one JSON text a line. Its permit token comes from the config's
// place for it.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "gateway/front/session.h"

namespace tally::gateway {

class StdioFront {
 public:
  // Takes the two descriptors. `ended`: called once, when the client has closed its end or ours cannot be written to.
  StdioFront(FrontServices services, std::string_view permit_token, int in_fd, int out_fd, std::function<void()> ended);
  ~StdioFront();
  StdioFront(const StdioFront&) = delete;

  void Start();
  // To be called every few seconds.
  void Sweep();
  void Close();

 private:
  class Channel;
  std::shared_ptr<Channel> channel_;
};

}  // namespace tally::gateway
