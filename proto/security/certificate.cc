#include "proto/security/certificate.h"

#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

#include "fmt/format.h"
#include "proto/process/folders.h"
#include "proto/process/replace_file.h"

namespace percs {
namespace {

template <auto Free>
struct Freer {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freer<X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Freer<X509_EXTENSION_free>>;
using Memory = std::unique_ptr<BIO, Freer<BIO_free_all>>;
using Number = std::unique_ptr<BIGNUM, Freer<BN_free>>;
using Store = std::unique_ptr<X509_STORE, Freer<X509_STORE_free>>;
using StoreContext = std::unique_ptr<X509_STORE_CTX, Freer<X509_STORE_CTX_free>>;
using GeneralNames = std::unique_ptr<GENERAL_NAMES, Freer<GENERAL_NAMES_free>>;

constexpr int kVersion3 = 2;  // as encoded
constexpr int kSerialBits = 127;
constexpr std::chrono::minutes kClockSkew(5);
constexpr char kAuthorityFile[] = "/ca.pem";
constexpr char kIdentityFile[] = "/identity.pem";
constexpr mode_t kOthers = S_IRWXO;

absl::Status OpenSslError(const char* what) {
  std::array<char, 256> text{};
  ERR_error_string_n(ERR_get_error(), text.data(), text.size());
  ERR_clear_error();
  return absl::InternalError(fmt::format("{}: {}", what, text.data()));
}

std::string ToText(BIO* memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory, &data);
  return std::string(data, static_cast<std::size_t>(size));
}

std::string ToPem(X509* certificate) {
  const Memory memory(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(memory.get(), certificate);
  return ToText(memory.get());
}

std::string ToPem(EVP_PKEY* key) {
  const Memory memory(BIO_new(BIO_s_mem()));
  PEM_write_bio_PKCS8PrivateKey(memory.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
  return ToText(memory.get());
}

Certificate ReadCertificate(const std::string& pem) {
  const Memory memory(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  Certificate certificate(PEM_read_bio_X509(memory.get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  return certificate;
}

bool AddExtension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

// A certificate for `key` that lacks only extensions and signature.
Certificate Draft(EVP_PKEY* key, const std::string& name, X509* issuer,
                  std::chrono::hours lifetime) {
  Certificate certificate(X509_new());
  const Number serial(BN_new());
  X509* const c = certificate.get();
  // An expired one was valid once: its start is as far before its end.
  const auto end = std::chrono::seconds(lifetime);
  const auto start =
      std::min(-std::chrono::seconds(kClockSkew), end - std::chrono::seconds(kClockSkew));
  X509_NAME* const subject = X509_get_subject_name(c);
  const bool good =
      serial && BN_rand(serial.get(), kSerialBits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
      BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(c)) != nullptr &&
      X509_set_version(c, kVersion3) == 1 &&
      X509_gmtime_adj(X509_getm_notBefore(c), start.count()) != nullptr &&
      X509_gmtime_adj(X509_getm_notAfter(c), end.count()) != nullptr &&
      X509_set_pubkey(c, key) == 1 &&
      X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                                 reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1,
                                 0) == 1 &&
      X509_set_issuer_name(c, issuer != nullptr ? X509_get_subject_name(issuer) : subject) == 1;
  if (!good) certificate.reset();
  return certificate;
}

struct Authority {
  Key key;
  Certificate certificate;
};

absl::StatusOr<Authority> MakeAuthority(std::chrono::hours lifetime) {
  Authority authority;
  authority.key.reset(EVP_EC_gen("P-256"));
  if (!authority.key) return OpenSslError("making a key");
  authority.certificate = Draft(authority.key.get(), "percs authority", nullptr, lifetime);
  X509* const c = authority.certificate.get();
  if (c == nullptr || !AddExtension(c, c, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      !AddExtension(c, c, NID_key_usage, "critical,keyCertSign") ||
      !AddExtension(c, c, NID_subject_key_identifier, "hash") ||
      X509_sign(c, authority.key.get(), EVP_sha256()) == 0) {
    return OpenSslError("making the authority's certificate");
  }
  return authority;
}

absl::StatusOr<Identity> Issue(const Authority& authority, Role role, std::chrono::hours lifetime) {
  const Key key(EVP_EC_gen("P-256"));
  if (!key) return OpenSslError("making a key");
  X509* const issuer = authority.certificate.get();
  const Certificate certificate = Draft(key.get(), RoleName(role), issuer, lifetime);
  X509* const c = certificate.get();
  if (c == nullptr || !AddExtension(c, issuer, NID_basic_constraints, "critical,CA:FALSE") ||
      !AddExtension(c, issuer, NID_key_usage, "critical,digitalSignature") ||
      !AddExtension(c, issuer, NID_ext_key_usage, "serverAuth,clientAuth") ||
      !AddExtension(c, issuer, NID_subject_alt_name, "DNS:" + RoleHost(role)) ||
      !AddExtension(c, issuer, NID_authority_key_identifier, "keyid") ||
      X509_sign(c, authority.key.get(), EVP_sha256()) == 0) {
    return OpenSslError("making a certificate");
  }
  return Identity{ToPem(issuer), ToPem(c), ToPem(key.get())};
}

// The role whose name is the certificate's DNS name.
absl::StatusOr<Role> NamedRole(X509* certificate) {
  const GeneralNames names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_DNS) continue;
    const std::string text(reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName)),
                           static_cast<std::size_t>(ASN1_STRING_length(name->d.dNSName)));
    for (const Role role : kAllRoles) {
      if (text == RoleHost(role)) return role;
    }
  }
  return absl::UnauthenticatedError("the certificate does not name a role of a fabric");
}

std::string TextOf(const ASN1_TIME* time) {
  const Memory memory(BIO_new(BIO_s_mem()));
  ASN1_TIME_print(memory.get(), time);
  return ToText(memory.get());
}

// Every block of `text` from its BEGIN to its END line whose label is `label`.
std::vector<std::string> Blocks(const std::string& text, const std::string& label) {
  std::vector<std::string> blocks;
  const std::string begin = "-----BEGIN " + label + "-----", end = "-----END " + label + "-----";
  for (std::size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at + 1)) {
    const std::size_t last = text.find(end, at);
    if (last == std::string::npos) break;
    blocks.push_back(text.substr(at, last + end.size() - at) + "\n");
  }
  return blocks;
}

absl::StatusOr<std::string> ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return absl::NotFoundError(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

}  // namespace

absl::StatusOr<std::map<Role, Identity>> IssueIdentities(std::chrono::hours lifetime,
                                                         const Lifetimes& own) {
  const auto authority = MakeAuthority(lifetime);
  if (!authority.ok()) return authority.status();
  std::map<Role, Identity> identities;
  for (const Role role : kAllRoles) {
    const auto special = own.find(role);
    auto identity = Issue(*authority, role, special == own.end() ? lifetime : special->second);
    if (!identity.ok()) return identity.status();
    identities[role] = *std::move(identity);
  }
  return identities;
}

absl::StatusOr<Role> VerifyCertificate(const std::string& certificate,
                                       const std::string& authority) {
  const Certificate own = ReadCertificate(certificate), ca = ReadCertificate(authority);
  if (!own) return absl::UnauthenticatedError("the certificate cannot be read");
  if (!ca) return absl::UnauthenticatedError("the authority's certificate cannot be read");
  const Store store(X509_STORE_new());
  const StoreContext context(X509_STORE_CTX_new());
  X509_STORE_add_cert(store.get(), ca.get());
  X509_STORE_CTX_init(context.get(), store.get(), own.get(), nullptr);
  if (X509_verify_cert(context.get()) != 1) {
    const int error = X509_STORE_CTX_get_error(context.get());
    ERR_clear_error();
    if (error == X509_V_ERR_CERT_HAS_EXPIRED) {
      return absl::UnauthenticatedError(
          fmt::format("the certificate expired on {}; `percsctl ca` makes new ones",
                      TextOf(X509_get0_notAfter(own.get()))));
    }
    return absl::UnauthenticatedError(
        fmt::format("the certificate was not issued by this fabric's authority ({})",
                    X509_verify_cert_error_string(error)));
  }
  return NamedRole(own.get());
}

absl::StatusOr<Role> VerifyIdentity(const Identity& identity) {
  auto role = VerifyCertificate(identity.certificate, identity.authority);
  if (!role.ok()) return role;
  const Memory memory(BIO_new_mem_buf(identity.key.data(), static_cast<int>(identity.key.size())));
  const Key key(PEM_read_bio_PrivateKey(memory.get(), nullptr, nullptr, nullptr));
  if (!key || X509_check_private_key(ReadCertificate(identity.certificate).get(), key.get()) != 1) {
    ERR_clear_error();
    return absl::InvalidArgumentError("the private key does not belong to the certificate");
  }
  return role;
}

std::string ToBundle(const Identity& identity) {
  return identity.key + identity.certificate + identity.authority;
}

absl::StatusOr<Identity> FromBundle(const std::string& text) {
  const std::vector<std::string> keys = Blocks(text, "PRIVATE KEY"),
                                 certificates = Blocks(text, "CERTIFICATE");
  if (keys.size() != 1 || certificates.size() != 2) {
    return absl::InvalidArgumentError(
        fmt::format("expected a PRIVATE KEY, its CERTIFICATE and the authority's CERTIFICATE in "
                    "PEM; found {} keys and {} certificates",
                    keys.size(), certificates.size()));
  }
  return Identity{certificates[1], certificates[0], keys[0]};
}

absl::Status WriteIdentity(const std::string& folder, const Identity& identity) {
  if (absl::Status s = MakeFolder(folder, kReadableFolder); !s.ok()) return s;
  absl::Status s = ReplaceFile(folder + kAuthorityFile, identity.authority, kPrivateFile);
  if (!s.ok()) return s;
  return ReplaceFile(folder + kIdentityFile, identity.key + identity.certificate, kPrivateFile);
}

absl::StatusOr<Identity> ReadIdentity(const std::string& folder) {
  const std::string path = folder + kIdentityFile;
  const auto own = ReadText(path), authority = ReadText(folder + kAuthorityFile);
  for (const auto* part : {&own, &authority}) {
    if (part->ok()) continue;
    return absl::NotFoundError(
        fmt::format("{}; `percsctl ca` makes a folder per role with ca.pem and identity.pem",
                    std::string(part->status().message())));
  }
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && (info.st_mode & kOthers) != 0) {
    return absl::PermissionDeniedError(fmt::format(
        "{} contains a private key, but other users may read or change it; run chmod o= on it",
        path));
  }
  auto identity = FromBundle(*own + *authority);
  if (!identity.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: {}", folder, std::string(identity.status().message())));
  }
  return identity;
}

}  // namespace percs
