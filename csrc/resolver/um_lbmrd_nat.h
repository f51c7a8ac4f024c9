/* Address translation of lbmrd: domains (networks that see each other's addresses) and, from one domain to another,
 * rules that replace addresses and ports of advertisements. Filled from the configuration, then constant: any thread
 * may ask. No I/O. */
#ifndef UM_RESOLVER_UM_LBMRD_NAT_H
#define UM_RESOLVER_UM_LBMRD_NAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UM_LBMRD_MAX_DOMAINS 256
#define UM_LBMRD_MAX_NETWORKS 4096
#define UM_LBMRD_MAX_RULES 65536
#define UM_LBMRD_NO_DOMAIN (-1)
#define UM_LBMRD_ANY_PORT (-1)

struct um_lbmrd_rule {
    uint32_t match_ip, replace_ip;    /* network order */
    int32_t match_port, replace_port; /* host order, or UM_LBMRD_ANY_PORT: every one; keep it */
};

struct um_lbmrd_nat;

struct um_lbmrd_nat *um_lbmrd_nat_create(void); /* NULL + error */
void um_lbmrd_nat_destroy(struct um_lbmrd_nat *nat);

/* Filling; each -1 + error. A domain is the next number from 0 on. */
int um_lbmrd_nat_add_domain(struct um_lbmrd_nat *nat);
/* ip in network order; bits beyond `prefix` do not count. A network belongs to one domain. */
int um_lbmrd_nat_add_network(struct um_lbmrd_nat *nat, int domain, uint32_t ip, int prefix);
/* Rules are tried in the order in which they were added. */
int um_lbmrd_nat_add_rule(struct um_lbmrd_nat *nat, int source, int destination, const struct um_lbmrd_rule *rule);
/* After the last, before the first question. */
int um_lbmrd_nat_ready(struct um_lbmrd_nat *nat);

int um_lbmrd_nat_domains(const struct um_lbmrd_nat *nat);
/* The domain whose network contains the address (network order), that of the longest prefix; or none. */
int um_lbmrd_nat_domain_of(const struct um_lbmrd_nat *nat, uint32_t ip);
/* Whether any rule leads to this domain. */
bool um_lbmrd_nat_translates_for(const struct um_lbmrd_nat *nat, int destination);
/* Translates the advertisements of a valid datagram for a domain, in place and without changing any length. `sender`
 * (network order) stands for the source of an advertisement whose own address is in no domain. Returns how many pairs
 * of address and port were replaced. */
unsigned um_lbmrd_nat_rewrite(const struct um_lbmrd_nat *nat, int destination, uint32_t sender, uint8_t *data,
                              size_t len);

#endif
