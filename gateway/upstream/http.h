// An upstream that is a Streamable HTTP URL. Each request has a connection of its own, made for it and closed after it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <map>
#include <string>

#include "gateway/upstream/http_client.h"
#include "gateway/upstream/session.h"

namespace tally::gateway {

struct HttpUpstreamTarget {
  Url url;
  std::map<std::string, std::string> headers = {};  // sent with every request; may hold secrets
};

// Opens no connection yet.
SharedUpstream OpenHttpUpstream(const asio::any_io_executor& loop, std::string name, HttpUpstreamTarget target,
                                UpstreamSink sink, const UpstreamLimits& limits = {});

}  // namespace tally::gateway
