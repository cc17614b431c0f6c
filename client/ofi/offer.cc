#include "client/ofi/offer.h"

#include <cstdint>
#include <cstring>
#include <initializer_list>

namespace percs::mpi {
namespace {

constexpr std::uint64_t kCaps =
    FI_TAGGED | FI_SEND | FI_RECV | FI_DIRECTED_RECV | FI_SOURCE | FI_LOCAL_COMM | FI_REMOTE_COMM;
constexpr std::uint64_t kOrder = FI_ORDER_SAS;
constexpr std::size_t kInjectBytes = 16 * 1024;

}  // namespace

bool Offers(const fi_info* hints) {
  if (hints == nullptr) return true;
  if ((hints->caps & ~kCaps) != 0) return false;
  const fi_ep_attr* ep = hints->ep_attr;
  if (ep != nullptr && ep->type != FI_EP_UNSPEC && ep->type != FI_EP_RDM) return false;
  for (const std::uint64_t order : {hints->tx_attr != nullptr ? hints->tx_attr->msg_order : 0,
                                    hints->rx_attr != nullptr ? hints->rx_attr->msg_order : 0}) {
    if ((order & ~kOrder) != 0) return false;
  }
  const fi_domain_attr* domain = hints->domain_attr;
  return domain == nullptr || domain->cq_data_size <= sizeof(std::uint64_t);
}

void Describe(const fi_info* hints, fi_info* info) {
  info->caps = kCaps;
  info->addr_format = FI_FORMAT_UNSPEC;
  info->tx_attr->caps = kCaps;
  info->tx_attr->msg_order = kOrder;
  info->tx_attr->inject_size = kInjectBytes;
  info->tx_attr->size = kContextsMax;
  info->tx_attr->iov_limit = 4;
  info->rx_attr->caps = kCaps;
  info->rx_attr->msg_order = kOrder;
  info->rx_attr->size = kContextsMax;
  info->rx_attr->iov_limit = 4;
  info->ep_attr->type = FI_EP_RDM;
  info->ep_attr->protocol_version = 1;
  info->ep_attr->max_msg_size = std::size_t{256} << 20;
  info->ep_attr->mem_tag_format = 0xaaaaaaaaaaaaaaaaull;  // any field, 64 bits
  info->ep_attr->tx_ctx_cnt = info->ep_attr->rx_ctx_cnt = 1;
  fi_domain_attr* domain = info->domain_attr;
  domain->threading = FI_THREAD_SAFE;
  domain->control_progress = domain->data_progress = FI_PROGRESS_MANUAL;
  domain->resource_mgmt = FI_RM_ENABLED;
  domain->av_type = FI_AV_MAP;
  if (hints != nullptr && hints->domain_attr != nullptr) {
    const fi_domain_attr& asked = *hints->domain_attr;
    if (asked.av_type != FI_AV_UNSPEC) domain->av_type = asked.av_type;
    if (asked.control_progress != FI_PROGRESS_UNSPEC)
      domain->control_progress = asked.control_progress;
    if (asked.data_progress != FI_PROGRESS_UNSPEC) domain->data_progress = asked.data_progress;
    if (asked.threading != FI_THREAD_UNSPEC) domain->threading = asked.threading;
  }
  domain->cq_data_size = sizeof(std::uint64_t);
  domain->cq_cnt = domain->ep_cnt = domain->tx_ctx_cnt = domain->rx_ctx_cnt = 1;
  domain->max_ep_tx_ctx = domain->max_ep_rx_ctx = 1;
  domain->caps = FI_LOCAL_COMM | FI_REMOTE_COMM;
  domain->name = strdup(kName);
  info->fabric_attr->name = strdup(kName);
  info->fabric_attr->prov_name = strdup(kName);
  info->fabric_attr->prov_version = FI_VERSION(0, 1);
}

}  // namespace percs::mpi
