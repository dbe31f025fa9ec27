#include "gateway/front/endpoint.h"

#include <absl/strings/ascii.h>
#include <absl/strings/escaping.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <sodium.h>

#include <algorithm>
#include <utility>

#include "gateway/mcp/protocol.h"

namespace tally::gateway {
namespace {

constexpr uint64_t kGeneral = 0;             // the number of the stream that belongs to no request
constexpr size_t kEndedStreamsMax = 32;      // kept for one session
constexpr std::chrono::minutes kKeptFor{5};  // an answer that nobody took, for whoever takes it up again
constexpr std::array kLoopback = {"127.0.0.1", "localhost", "[::1]"};

// What is wrong with a request, as a JSON-RPC error that belongs to no id.
ClientReply Refused(int status, int64_t code, std::string_view message, std::string_view raw_id = "null") {
  ClientReply reply;
  reply.status = status;
  reply.body = mcp::ErrorText(raw_id, {code, std::string(message), ""});
  return reply;
}

ClientReply Unauthorized() {
  ClientReply reply = Refused(401, mcp::code::kInvalidRequest,
                              "unauthorized: a permit token is needed (Authorization: Bearer …) that the authority "
                              "knows. Nothing was done.");
  reply.headers.emplace_back("WWW-Authenticate", R"(Bearer realm="tallystick")");
  return reply;
}

// Without the header it is 2025-03-26.
bool VersionIsLegacy(const ClientRequest& request) {
  const auto versions = request.Headers("mcp-protocol-version");
  return versions.empty() || (versions.size() == 1 && mcp::version::IsLegacy(versions[0]));
}

ClientReply UnknownVersion() {
  return Refused(400, mcp::code::kInvalidRequest,
                 "This MCP-Protocol-Version is not spoken here. Spoken are 2026-07-28 (POST alone), 2025-11-25, "
                 "2025-06-18 and 2025-03-26. Nothing was done.");
}

std::string NewSessionId() {
  std::string bytes(24, '\0');
  randombytes_buf(bytes.data(), bytes.size());
  return absl::BytesToHexString(bytes);
}

// "NAME:PORT" without its port; brackets stay.
std::string_view NameOf(std::string_view host) {
  const size_t bracket = host.find(']');
  const size_t colon = host.find(':', bracket == host.npos ? 0 : bracket);
  return host.substr(0, colon);
}

bool IsLoopback(std::string_view name) {
  return std::any_of(kLoopback.begin(), kLoopback.end(), [&](std::string_view known) {
    return absl::EqualsIgnoreCase(std::string(known), std::string(name));
  });
}

// What a client is ready to read. Without the header it takes anything.
bool Accepts(const ClientRequest& request, std::string_view type) {
  const auto accepts = request.Headers("accept");
  if (accepts.empty()) return true;
  const std::string family = absl::StrCat(std::string(type.substr(0, type.find('/'))), "/*");
  return std::any_of(accepts.begin(), accepts.end(), [&](const std::string& accept) {
    return absl::StrContains(accept, std::string(type)) || absl::StrContains(accept, "*/*") ||
           absl::StrContains(accept, family);
  });
}

// A header may hold any bytes. A token has none but these, and what has others is none: it cannot even be asked about.
std::string IfPrintable(std::string token) {
  const bool good = std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < 0x7f; });
  return good ? token : "";
}

std::string EventPrefix(uint64_t stream) { return absl::StrCat(stream, "-"); }

}  // namespace

Endpoint::Endpoint(FrontServices services, uint16_t port) : services_(services), port_(port), modern_(services) {}

bool Endpoint::HostAllowed(const std::string& host) const {
  const std::string_view name = NameOf(host);
  if (IsLoopback(name)) return host.size() == name.size() || host.substr(name.size()) == absl::StrCat(":", port_);
  const auto& allowed = services_.config->listen.allowed_hosts;
  return std::any_of(allowed.begin(), allowed.end(), [&](const std::string& entry) {
    return absl::EqualsIgnoreCase(entry, host) || absl::EqualsIgnoreCase(entry, std::string(name));
  });
}

bool Endpoint::OriginAllowed(const std::string& origin) const {
  const size_t scheme = origin.find("://");
  if (scheme == origin.npos) return false;
  if (IsLoopback(NameOf(std::string_view(origin).substr(scheme + 3)))) return true;
  const auto& allowed = services_.config->listen.allowed_origins;
  return std::any_of(allowed.begin(), allowed.end(),
                     [&](const std::string& entry) { return absl::EqualsIgnoreCase(entry, origin); });
}

std::string Endpoint::TokenOf(const ClientRequest& request) const {
  const std::string& where = services_.config->permit.http;
  if (where != "bearer") {
    return IfPrintable(request.Header(absl::AsciiStrToLower(where.substr(where.find(':') + 1))).value_or(""));
  }
  const std::string value = request.Header("authorization").value_or("");
  return absl::StartsWithIgnoreCase(value, "bearer ") ? IfPrintable(value.substr(7)) : "";
}

asio::awaitable<ClientReply> Endpoint::Handle(ClientRequest request) {
  const auto host = request.Header("host");
  const auto origins = request.Headers("origin");
  if (!host || !HostAllowed(*host) || origins.size() > 1 || (origins.size() == 1 && !OriginAllowed(origins[0]))) {
    co_return Refused(403, mcp::code::kInvalidRequest,
                      "This Host or Origin is not allowed here (listen.allowed_hosts, listen.allowed_origins). Nothing "
                      "was done.");
  }
  if (request.path != services_.config->listen.path) {
    ClientReply reply;
    reply.status = 404;
    reply.content_type = "text/plain";
    reply.body = absl::StrCat("There is nothing here. The MCP endpoint is ", services_.config->listen.path, "\n");
    co_return reply;
  }
  std::string token = TokenOf(request);
  if (token.empty()) co_return Unauthorized();
  if (request.method == "POST") co_return co_await Post(std::move(request), std::move(token));
  if (!VersionIsLegacy(request)) co_return UnknownVersion();
  if (request.method == "GET") co_return Get(request, token);
  if (request.method == "DELETE") co_return Delete(request, token);
  ClientReply reply = Refused(405, mcp::code::kInvalidRequest, "Only POST, GET and DELETE are known here.");
  reply.headers.emplace_back("Allow", "GET, POST, DELETE");
  co_return reply;
}

Endpoint::SharedClient Endpoint::Find(const ClientRequest& request, const std::string& token, ClientReply* refusal) {
  const auto id = request.Header("mcp-session-id");
  if (!id) {
    *refusal =
        Refused(400, mcp::code::kInvalidRequest, "Mcp-Session-Id is missing: initialize first. Nothing was done.");
    return nullptr;
  }
  const auto found = sessions_.find(*id);
  // Another token's session looks like none.
  if (found == sessions_.end() || !found->second->session->Holds(token)) {
    *refusal = Refused(404, mcp::code::kInvalidRequest, "There is no such session: initialize anew. Nothing was done.");
    return nullptr;
  }
  found->second->session->Touch();
  return found->second;
}

asio::awaitable<ClientReply> Endpoint::Post(ClientRequest request, std::string token) {
  const auto type = request.Header("content-type").value_or("");
  if (!absl::StartsWithIgnoreCase(type, "application/json")) {
    co_return Refused(415, mcp::code::kInvalidRequest, "Content-Type must be application/json. Nothing was done.");
  }
  if (!Accepts(request, "application/json") && !Accepts(request, "text/event-stream")) {
    co_return Refused(406, mcp::code::kInvalidRequest,
                      "Accept must name application/json and text/event-stream. Nothing was done.");
  }
  auto parsed = mcp::ParseMessage(request.body, mcp::From::kClient,
                                  static_cast<size_t>(services_.config->limits.message_bytes_max));
  if (const auto* malformed = std::get_if<mcp::Malformed>(&parsed)) {
    co_return Refused(400, malformed->code, malformed->message, malformed->id);
  }
  mcp::Message message = std::get<mcp::Message>(std::move(parsed));
  if (Modern::Takes(request, message)) {
    co_return co_await modern_.Handle(std::move(request), std::move(token), std::move(message));
  }
  if (!VersionIsLegacy(request)) co_return UnknownVersion();
  if (message.kind == mcp::Message::Kind::kRequest && message.method == mcp::method::kInitialize) {
    co_return co_await Begin(std::move(request), std::move(token), std::move(message));
  }
  ClientReply refusal;
  const SharedClient client = Find(request, token, &refusal);
  if (!client) co_return refusal;
  if (message.kind == mcp::Message::Kind::kRequest) co_return StreamOf(*client, request, std::move(message));
  if (message.kind == mcp::Message::Kind::kNotification) {
    client->session->TakeNotification(message);
  } else {
    client->session->TakeAnswer(std::move(message));
  }
  ClientReply accepted;
  accepted.status = 202;
  co_return accepted;
}

asio::awaitable<ClientReply> Endpoint::Begin(ClientRequest request, std::string token, mcp::Message message) {
  const auto permit = co_await services_.authority->GetPermit(token);
  if (!permit.ok() && permit.failure().kind == v1::KIND_UNAUTHORIZED) co_return Unauthorized();
  if (!permit.ok()) {
    // With status 200, so that clients keep the words.
    co_return Refused(200, mcp::code::kInternalError,
                      absl::StrCat("unavailable: the permit could not be looked up. Nothing was done; try again. ",
                                   permit.failure().message),
                      message.id);
  }
  if (sessions_.size() >= static_cast<size_t>(services_.config->limits.sessions_max)) {
    co_return Refused(503, mcp::code::kInternalError,
                      "The gateway has as many sessions as it may have. Nothing was done.", message.id);
  }
  auto client = std::make_shared<Client>();
  client->session = std::make_shared<Session>(services_, token);
  client->general = std::make_shared<EventStream>(services_.loop,
                                                  static_cast<size_t>(services_.config->limits.stream_bytes_max), true);
  client->session->SetGeneral(client->general);
  const std::string id = NewSessionId();
  sessions_.emplace(id, client);
  ClientReply reply = StreamOf(*client, request, std::move(message));
  reply.priming = false;
  reply.headers.emplace_back("Mcp-Session-Id", id);
  co_return reply;
}

ClientReply Endpoint::StreamOf(Client& client, const ClientRequest& request, mcp::Message message) {
  auto stream = std::make_shared<EventStream>(services_.loop,
                                              static_cast<size_t>(services_.config->limits.stream_bytes_max), false);
  const uint64_t number = ++client.last_stream;
  client.streams[number] = stream;
  std::erase_if(client.streams, [](const auto& entry) { return entry.second->spent(); });
  auto ended = static_cast<size_t>(std::count_if(client.streams.begin(), client.streams.end(),
                                                 [](const auto& entry) { return entry.second->ended(); }));
  for (auto entry = client.streams.begin(); ended > kEndedStreamsMax && entry != client.streams.end();) {
    const bool drop = entry->second->ended() && !entry->second->read();
    entry = drop ? client.streams.erase(entry) : std::next(entry);
    if (drop) --ended;
  }
  ClientReply reply;
  reply.stream = stream;
  reply.events = Accepts(request, "text/event-stream");
  reply.json = Accepts(request, "application/json");
  reply.event_prefix = EventPrefix(number);
  reply.priming = client.session->version() >= mcp::version::k20251125;
  client.session->TakeRequest(std::move(message), request.Headers("idempotency-key"), stream);
  return reply;
}

ClientReply Endpoint::Get(const ClientRequest& request, const std::string& token) {
  if (!Accepts(request, "text/event-stream")) {
    return Refused(406, mcp::code::kInvalidRequest, "GET opens an event stream: Accept must name text/event-stream.");
  }
  ClientReply refusal;
  const SharedClient client = Find(request, token, &refusal);
  if (!client) return refusal;
  uint64_t number = kGeneral;
  uint64_t after = 0;
  ClientReply reply;
  if (const auto last = request.Header("last-event-id")) {
    const size_t dash = last->find('-');
    if (dash == last->npos || !absl::SimpleAtoi(last->substr(0, dash), &number) ||
        !absl::SimpleAtoi(last->substr(dash + 1), &after)) {
      return Refused(400, mcp::code::kInvalidRequest, "This Last-Event-ID is not one of this session's.");
    }
  }
  if (number == kGeneral) {
    reply.stream = client->general;
  } else {
    const auto found = client->streams.find(number);
    // What is no longer kept has nothing more to say.
    if (found == client->streams.end()) {
      reply.stream = std::make_shared<EventStream>(services_.loop, 0, false);
      reply.stream->End();
    } else {
      reply.stream = found->second;
    }
  }
  reply.after = after;
  reply.json = false;
  reply.event_prefix = EventPrefix(number);
  reply.priming = number == kGeneral && client->session->version() >= mcp::version::k20251125;
  return reply;
}

ClientReply Endpoint::Delete(const ClientRequest& request, const std::string& token) {
  ClientReply refusal;
  if (!Find(request, token, &refusal)) return refusal;
  End(*request.Header("mcp-session-id"));
  ClientReply reply;
  reply.status = 204;
  return reply;
}

void Endpoint::End(const std::string& id) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  const SharedClient client = found->second;
  sessions_.erase(found);
  client->session->Close();
  client->general->End();
}

void Endpoint::Sweep() {
  modern_.Sweep();
  const auto now = std::chrono::steady_clock::now();
  std::vector<std::string> ended;
  for (auto& [id, client] : sessions_) {
    std::erase_if(client->streams, [&](const auto& entry) {
      return entry.second->spent() ||
             (entry.second->ended() && !entry.second->read() && now - entry.second->ended_at() > kKeptFor);
    });
    if (client->general->read() || client->session->busy()) client->session->Touch();
    if (now - client->session->last_used() > services_.config->limits.session_idle) ended.push_back(id);
  }
  for (const std::string& id : ended) End(id);
}

void Endpoint::CloseAll() {
  modern_.CloseAll();
  while (!sessions_.empty()) End(std::string(sessions_.begin()->first));
}

}  // namespace tally::gateway
