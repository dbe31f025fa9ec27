#include "server/rpc/credentials.h"

#include <grpc/grpc_security_constants.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

namespace tally::rpc {
namespace {

constexpr std::string_view kScheme = "Bearer ";

// Several `authorization` headers name nobody in particular.
std::optional<ledger::Credential> BearerOf(const grpc::ServerContextBase& context, bool& present) {
  const auto range = context.client_metadata().equal_range("authorization");
  present = range.first != range.second;
  if (!present || std::next(range.first) != range.second) return std::nullopt;
  const std::string_view header(range.first->second.data(), range.first->second.size());
  if (!header.starts_with(kScheme)) return std::nullopt;
  const std::string_view key = header.substr(kScheme.size());
  if (!ledger::IsApiKey(key)) return std::nullopt;
  return ledger::Credential{ledger::Credential::By::kKey, keys::Sha256(key)};
}

}  // namespace

std::optional<keys::Digest> CertificateSha256(std::string_view pem) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())),
                                                      &BIO_free);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(
      bio == nullptr ? nullptr : PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr), &X509_free);
  if (certificate == nullptr) return std::nullopt;
  // A connection may outlive the certificate it was made with.
  if (X509_cmp_current_time(X509_get0_notBefore(certificate.get())) >= 0 ||
      X509_cmp_current_time(X509_get0_notAfter(certificate.get())) <= 0) {
    return std::nullopt;
  }
  unsigned char* der = nullptr;
  const int size = i2d_X509(certificate.get(), &der);
  if (size <= 0) return std::nullopt;
  const keys::Digest digest = keys::Sha256({reinterpret_cast<const char*>(der), static_cast<size_t>(size)});
  OPENSSL_free(der);
  return digest;
}

std::optional<ledger::Credential> CredentialOf(const grpc::ServerContextBase& context) {
  bool bearer = false;
  if (auto credential = BearerOf(context, bearer); bearer) return credential;
  const auto auth = context.auth_context();
  if (auth == nullptr || !auth->IsPeerAuthenticated()) return std::nullopt;
  const auto certificates = auth->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  if (certificates.empty()) return std::nullopt;
  const auto digest = CertificateSha256({certificates[0].data(), certificates[0].size()});
  if (!digest) return std::nullopt;
  return ledger::Credential{ledger::Credential::By::kCertificate, *digest};
}

}  // namespace tally::rpc
