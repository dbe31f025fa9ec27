#include <curl/curl.h>
#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/outbound/address.h"
#include "lib/outbound/request.h"
#include "lib/outbound/url.h"

namespace tally::outbound {
namespace {

constexpr size_t kHeaderBytesMax = 64 << 10;  // of an answer, 1xx answers included

struct Transfer {
  const Request& request;
  Answer answer;
  size_t header_bytes = 0;
  bool too_large = false;
  bool refused = false;    // an address was
  bool connected = false;  // TLS included: from here on bytes of the request may have left
};

// ---- What libcurl calls ----

// The only place where a connection is made; libcurl connects this socket to this very address.
curl_socket_t OpenSocket(void* user, curlsocktype purpose, curl_sockaddr* address) {
  Transfer& transfer = *static_cast<Transfer*>(user);
  if (purpose != CURLSOCKTYPE_IPCXN) return CURL_SOCKET_BAD;
  if (!transfer.request.allow_private && !IsPublic(address->addr, address->addrlen)) {
    transfer.refused = true;
    return CURL_SOCKET_BAD;
  }
  return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

int BeforeRequest(void* user, char*, char*, int, int) {
  static_cast<Transfer*>(user)->connected = true;
  return CURL_PREREQFUNC_OK;
}

size_t TakeBody(char* data, size_t, size_t size, void* user) {
  Transfer& transfer = *static_cast<Transfer*>(user);
  if (size > transfer.request.answer_bytes_max - transfer.answer.body.size()) {
    transfer.too_large = true;
    return 0;
  }
  transfer.answer.body.append(data, size);
  return size;
}

size_t TakeHeader(char*, size_t, size_t size, void* user) {
  Transfer& transfer = *static_cast<Transfer*>(user);
  transfer.header_bytes += size;
  transfer.too_large |= transfer.header_bytes > kHeaderBytesMax;
  return transfer.too_large ? 0 : size;
}

// ---- What may be sent ----

bool IsToken(std::string_view text) {  // RFC 9110, 5.6.2
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](unsigned char c) {
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
           kOthers.find(static_cast<char>(c)) != kOthers.npos;
  });
}

bool HasBody(const std::string& method) { return method == "POST" || method == "PUT" || method == "PATCH"; }

absl::Status Check(const Request& request) {
  if (absl::Status status = CheckUrl(request.url, request.allow_http); !status.ok()) return status;
  constexpr std::string_view kMethods[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY"};
  if (std::find(std::begin(kMethods), std::end(kMethods), request.method) == std::end(kMethods)) {
    return absl::InvalidArgumentError("the request's method is none that is sent here");
  }
  if (!request.body.empty() && !HasBody(request.method)) {
    return absl::InvalidArgumentError(absl::StrCat("a ", request.method, " has no body"));
  }
  if (request.timeout.count() <= 0) return absl::InvalidArgumentError("the request's timeout must be above zero");
  for (const auto& [name, value] : request.headers) {
    if (!IsToken(name)) return absl::InvalidArgumentError("a header's name has characters that no name may have");
    const auto control = [](unsigned char c) { return (c < ' ' && c != '\t') || c == 0x7f; };
    if (std::any_of(value.begin(), value.end(), control)) {
      return absl::InvalidArgumentError(absl::StrCat("the value of header ", name, " has control characters"));
    }
    // They say where a message ends and whom it is for: libcurl writes them.
    for (const char* own :
         {"host", "content-length", "transfer-encoding", "connection", "expect", "upgrade", "te", "trailer"}) {
      if (absl::EqualsIgnoreCase(name, own)) {
        return absl::InvalidArgumentError(absl::StrCat("the header ", name, " cannot be set"));
      }
    }
  }
  return absl::OkStatus();
}

// ---- Setting it up ----

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using List = std::unique_ptr<curl_slist, FreeList>;

bool Append(List& list, const std::string& line) {
  curl_slist* longer = curl_slist_append(list.get(), line.c_str());
  if (longer == nullptr) return false;
  (void)list.release();
  list.reset(longer);
  return true;
}

bool Headers(const Request& request, List& list) {
  bool ok = Append(list, "Expect:");  // libcurl would send twice where it is refused
  bool content_type = false, agent = false;
  for (const auto& [name, value] : request.headers) {
    content_type |= absl::EqualsIgnoreCase(name, "content-type");
    agent |= absl::EqualsIgnoreCase(name, "user-agent");
    ok = ok && Append(list, value.find_first_not_of(" \t") == value.npos ? name + ";" : name + ": " + value);
  }
  if (!content_type) ok = ok && Append(list, "Content-Type:");  // or libcurl makes a form of every body
  if (!agent) ok = ok && Append(list, "User-Agent: tallystick");
  return ok;
}

// True if libcurl took all of it. The transfer's request and the headers must live until the transfer has ended.
bool Configure(CURL* curl, Transfer& transfer, const List& headers, char* error) {
  const Request& request = transfer.request;
  bool ok = true;
  const auto set = [&](CURLoption option, auto value) { ok = ok && curl_easy_setopt(curl, option, value) == CURLE_OK; };
  set(CURLOPT_ERRORBUFFER, error);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_QUICK_EXIT, 1L);  // or a name server that does not answer holds the caller beyond the timeout
  set(CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout.count()));
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request.timeout.count()));

  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_PATH_AS_IS, 1L);
  set(CURLOPT_PROTOCOLS_STR, request.allow_http ? "http,https" : "https");
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_PROXY, "");
  set(CURLOPT_NOPROXY, "*");
  set(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
  set(CURLOPT_FRESH_CONNECT, 1L);  // libcurl sends again when a kept connection turns out to be dead
  set(CURLOPT_FORBID_REUSE, 1L);
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));  // HTTP/2 has refused streams, sent again
  set(CURLOPT_OPENSOCKETFUNCTION, &OpenSocket);
  set(CURLOPT_OPENSOCKETDATA, &transfer);
  set(CURLOPT_PREREQFUNCTION, &BeforeRequest);
  set(CURLOPT_PREREQDATA, &transfer);

  set(CURLOPT_SSL_VERIFYPEER, 1L);
  set(CURLOPT_SSL_VERIFYHOST, 2L);
  set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (!request.ca_file.empty()) {
    set(CURLOPT_CAINFO, request.ca_file.c_str());
    set(CURLOPT_CAPATH, static_cast<char*>(nullptr));  // these, and not the system's besides
  }

  set(CURLOPT_HTTPHEADER, headers.get());
  if (HasBody(request.method)) {
    set(CURLOPT_POST, 1L);
    set(CURLOPT_POSTFIELDS, request.body.data());
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  }
  if (request.method == "HEAD") {
    set(CURLOPT_NOBODY, 1L);
  } else if (request.method != "GET" && request.method != "POST") {
    set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
  set(CURLOPT_WRITEFUNCTION, &TakeBody);
  set(CURLOPT_WRITEDATA, &transfer);
  set(CURLOPT_HEADERFUNCTION, &TakeHeader);
  set(CURLOPT_HEADERDATA, &transfer);
  return ok;
}

// ---- What became of it ----

absl::Status Failure(const Transfer& transfer, CURLcode code, std::string_view error) {
  const std::string origin = Origin(transfer.request.url);
  if (transfer.too_large) {
    return absl::ResourceExhaustedError(
        absl::StrCat(origin, ": the answer is above the limit of ", transfer.request.answer_bytes_max, " bytes"));
  }
  // libcurl's own words about a transfer may quote what the server said; those about a certificate are OpenSSL's.
  std::string why = curl_easy_strerror(code);
  if (code == CURLE_PEER_FAILED_VERIFICATION && error.starts_with("SSL certificate problem: ")) why = error;
  if (code == CURLE_OPERATION_TIMEDOUT)
    why = absl::StrCat("no answer within ", transfer.request.timeout.count(), " ms");
  if (transfer.connected) {
    const std::string text = absl::StrCat(origin, ": ", why, "; the request may have been sent");
    return code == CURLE_OPERATION_TIMEDOUT ? absl::DeadlineExceededError(text) : absl::UnknownError(text);
  }
  if (transfer.refused) {
    return absl::PermissionDeniedError(
        absl::StrCat(origin,
                     ": its address is not of the public internet, and such addresses are not allowed here; "
                     "nothing was sent"));
  }
  if (code == CURLE_OPERATION_TIMEDOUT)
    why = absl::StrCat("no connection within ", transfer.request.timeout.count(), " ms");
  const std::string text = absl::StrCat(origin, ": ", why, "; nothing was sent");
  if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_SSL_CACERT_BADFILE) {
    return absl::InvalidArgumentError(text);
  }
  return absl::UnavailableError(text);
}

}  // namespace

absl::StatusOr<Answer> Send(const Request& request) {
  if (absl::Status status = Check(request); !status.ok()) return status;
  // Once, and before any handle; C++ sees to it that threads wait for the first.
  static const CURLcode global = curl_global_init(CURL_GLOBAL_DEFAULT);
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(global == CURLE_OK ? curl_easy_init() : nullptr,
                                                                 &curl_easy_cleanup);
  Transfer transfer{request, {}};
  List headers;
  char error[CURL_ERROR_SIZE] = "";
  if (curl == nullptr || !Headers(request, headers) || !Configure(curl.get(), transfer, headers, error)) {
    return absl::InternalError("the request could not be set up; nothing was sent");
  }
  if (const CURLcode code = curl_easy_perform(curl.get()); code != CURLE_OK) return Failure(transfer, code, error);
  long status = 0;
  const char* content_type = nullptr;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo(curl.get(), CURLINFO_CONTENT_TYPE, &content_type);
  transfer.answer.status = static_cast<int>(status);
  if (content_type != nullptr) transfer.answer.content_type = content_type;
  return std::move(transfer.answer);
}

}  // namespace tally::outbound
