#include "tests/distributed/generic_call.h"

#include <chrono>
#include <vector>

#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"

namespace percs::test {
namespace {

grpc::ByteBuffer ToBuffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

std::string ToString(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return "";
  std::string bytes;
  for (const grpc::Slice& s : slices)
    bytes.append(reinterpret_cast<const char*>(s.begin()), s.size());
  return bytes;
}

bool Await(grpc::CompletionQueue* queue) {
  void* tag = nullptr;
  bool good = false;
  return queue->Next(&tag, &good) && good;
}

}  // namespace

std::string TextField(int number, const std::string& text) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(text.size())} + text;
}

grpc::Status GenericCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                         const std::string& request, std::string* reply, int deadline_ms) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(deadline_ms));
  auto call = stub.PrepareCall(&context, method, &queue);
  call->StartCall(nullptr);
  Await(&queue);
  call->WriteLast(ToBuffer(request), grpc::WriteOptions(), nullptr);
  Await(&queue);
  grpc::ByteBuffer buffer;
  call->Read(&buffer, nullptr);
  if (Await(&queue)) *reply = ToString(buffer);
  grpc::Status status;
  call->Finish(&status, nullptr);
  Await(&queue);
  return status;
}

grpc::Status Reflect(const std::shared_ptr<grpc::Channel>& channel, const std::string& request,
                     std::string* reply) {
  return GenericCall(channel, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                     request, reply);
}

}  // namespace percs::test
