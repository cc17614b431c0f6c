// Certificates and roles. Method: real certificates, made here, broken one property at a time; the
// table of roles against the calls it should allow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "client/lib/authority_folder.h"
#include "daemon/config/address.h"
#include "proto/security/credentials.h"
#include "tests/support/temporary_folder.h"

namespace percs {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::chrono::hours kDay(24);

std::map<Role, Identity> Issue(std::chrono::hours lifetime = kDay) {
  auto identities = IssueIdentities(lifetime);
  EXPECT_TRUE(identities.ok()) << identities.status();
  return identities.ok() ? *std::move(identities) : std::map<Role, Identity>();
}

std::string MessageText(const absl::Status& status) { return std::string(status.message()); }

TEST(Certificates, ProveTheRoleTheyWereMadeFor) {
  for (const auto& [role, identity] : Issue()) {
    const auto proven = VerifyIdentity(identity);
    ASSERT_TRUE(proven.ok()) << proven.status();
    EXPECT_EQ(*proven, role);
  }
}

TEST(Certificates, OfAnotherAuthorityProveNothing) {
  const auto ours = Issue(), theirs = Issue();
  const auto role =
      VerifyCertificate(theirs.at(Role::kOperator).certificate, ours.at(Role::kOperator).authority);
  EXPECT_TRUE(absl::IsUnauthenticated(role.status()));
  EXPECT_THAT(MessageText(role.status()), HasSubstr("not issued by this fabric's authority"));
}

TEST(Certificates, ThatHaveExpiredSayWhen) {
  const Identity expired = Issue(-kDay).at(Role::kViewer);
  const auto role = VerifyCertificate(expired.certificate, expired.authority);
  EXPECT_TRUE(absl::IsUnauthenticated(role.status()));
  EXPECT_THAT(MessageText(role.status()),
              AllOf(HasSubstr("expired on "), HasSubstr("percsctl ca")));
}

TEST(Certificates, OfAnAuthorityAreNotThoseOfARole) {
  const Identity identity = Issue().at(Role::kViewer);
  EXPECT_THAT(MessageText(VerifyCertificate(identity.authority, identity.authority).status()),
              HasSubstr("does not name a role"));
}

TEST(Certificates, NeedTheirOwnKey) {
  auto identities = Issue();
  Identity mixed = identities.at(Role::kViewer);
  mixed.key = identities.at(Role::kOperator).key;
  EXPECT_THAT(MessageText(VerifyIdentity(mixed).status()),
              HasSubstr("does not belong to the certificate"));
}

TEST(Certificates, TravelAsOneText) {
  const Identity identity = Issue().at(Role::kOperator);
  const auto back = FromBundle("a word before\n" + ToBundle(identity));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->key, identity.key);
  EXPECT_EQ(back->certificate, identity.certificate);
  EXPECT_EQ(back->authority, identity.authority);
  EXPECT_THAT(MessageText(FromBundle(identity.key + identity.certificate).status()),
              HasSubstr("1 keys and 1 certificates"));
}

TEST(AuthorityFolder, IsLeftAloneWhileItIsValid) {
  const test::TemporaryFolder folder;
  const auto made = MakeAuthorityFolder(folder.path(), kDay, false);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE(*made);
  const auto first = ReadIdentity(RoleFolder(folder.path(), Role::kDaemon));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_FALSE(*MakeAuthorityFolder(folder.path(), kDay, false));
  EXPECT_EQ(ReadIdentity(RoleFolder(folder.path(), Role::kDaemon))->key, first->key);
  EXPECT_TRUE(*MakeAuthorityFolder(folder.path(), kDay, true));
  EXPECT_NE(ReadIdentity(RoleFolder(folder.path(), Role::kDaemon))->key, first->key);
}

TEST(AuthorityFolder, IsMadeAnewIfOneIsMissingOrExpired) {
  const test::TemporaryFolder folder;
  ASSERT_TRUE(MakeAuthorityFolder(folder.path(), kDay, false).ok());
  std::filesystem::remove(RoleFolder(folder.path(), Role::kViewer) + "/identity.pem");
  EXPECT_TRUE(*MakeAuthorityFolder(folder.path(), kDay, false));
  EXPECT_TRUE(*MakeAuthorityFolder(folder.path(), -kDay, true));
  EXPECT_TRUE(*MakeAuthorityFolder(folder.path(), kDay, false));
  EXPECT_FALSE(*MakeAuthorityFolder(folder.path(), kDay, false));
}

TEST(AuthorityFolder, KeepsKeysForTheirOwner) {
  const test::TemporaryFolder folder;
  ASSERT_TRUE(MakeAuthorityFolder(folder.path(), kDay, false).ok());
  const std::string role = RoleFolder(folder.path(), Role::kOperator),
                    file = role + "/identity.pem";
  struct stat info;
  ASSERT_EQ(stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0600u);
  ASSERT_EQ(chmod(file.c_str(), 0644), 0);
  const auto loaded = Credentials::Load(role, RoleSet(Role::kOperator));
  EXPECT_TRUE(absl::IsPermissionDenied(loaded.status()));
  EXPECT_THAT(MessageText(loaded.status()), HasSubstr("chmod"));
}

TEST(CredentialsTest, AreOfARoleThatFits) {
  const test::TemporaryFolder folder;
  ASSERT_TRUE(MakeAuthorityFolder(folder.path(), kDay, false).ok());
  const auto loaded =
      Credentials::Load(RoleFolder(folder.path(), Role::kViewer), RoleSet(Role::kDaemon));
  EXPECT_THAT(MessageText(loaded.status()), HasSubstr("the role viewer; expected daemon"));
  EXPECT_THAT(
      MessageText(Credentials::Load(folder.path() + "/none", RoleSet(Role::kDaemon)).status()),
      HasSubstr("percsctl ca"));
}

TEST(CallerTest, IsHeldToTheTableOfRoles) {
  const auto identities = Issue();
  for (const MethodRoles& entry : AllMethodRoles()) {
    for (const auto& [role, identity] : identities) {
      const absl::Status status =
          CheckCaller(entry.method, identity.certificate, identity.authority);
      EXPECT_EQ(status.ok(), entry.roles.Has(role)) << entry.method << " by " << RoleName(role);
      if (!status.ok()) {
        EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
      }
    }
  }
}

TEST(CallerTest, IsToldWhatWasWrongAndCounted) {
  const auto ours = Issue(), theirs = Issue();
  const std::string& authority = ours.at(Role::kViewer).authority;
  const auto counts = [] {
    std::vector<std::uint64_t> list;
    for (std::size_t i = 0; i < kRefusals; ++i)
      list.push_back(RefusalCount(static_cast<Refusal>(i)));
    return list;
  };
  const auto before = counts();
  EXPECT_THAT(MessageText(CheckCaller("/percs.v1.Control/Status", "", authority)),
              HasSubstr("no certificate"));
  EXPECT_THAT(MessageText(CheckCaller("/percs.v1.Control/Status",
                                      theirs.at(Role::kOperator).certificate, authority)),
              HasSubstr("not issued by this fabric's authority"));
  EXPECT_THAT(
      MessageText(
          CheckCaller("/percs.v1.Control/Apply", ours.at(Role::kViewer).certificate, authority)),
      HasSubstr("this request needs the role operator; the certificate has the role viewer"));
  EXPECT_THAT(MessageText(CheckCaller("/percs.v1.Control/Else",
                                      ours.at(Role::kOperator).certificate, authority)),
              HasSubstr("no role may call"));
  auto after = counts();
  for (std::size_t i = 0; i < kRefusals; ++i) {
    EXPECT_EQ(after[i] - before[i], static_cast<Refusal>(i) == Refusal::kHandshake ? 0u : 1u)
        << kRefusalNames[i];
  }
}

TEST(Exposure, NeedsProofOfWhoCalls) {
  TransportSecurity plain;
  for (const char* text : {"unix:/tmp/x", "127.0.0.1:1", "127.1.2.3:1", "localhost:1", "[::1]:1"}) {
    EXPECT_TRUE(CheckExposure(*ParseAddress(text, 1), plain, "--listen").ok()) << text;
  }
  for (const char* text : {"tcp", "0.0.0.0:1", "10.0.0.1:1", "node7:1", "[::]:1"}) {
    const absl::Status status = CheckExposure(*ParseAddress(text, 1), plain, "--listen");
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << text;
    EXPECT_THAT(MessageText(status),
                AllOf(HasSubstr("--listen"), HasSubstr("--tls"), HasSubstr("--plaintext")));
  }
  plain.plaintext_allowed = true;
  EXPECT_TRUE(CheckExposure(*ParseAddress("tcp", 1), plain, "--listen").ok());
}

}  // namespace
}  // namespace percs
