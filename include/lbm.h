/**
 * lbm.h - the messaging interface of libum: contexts, sources, receivers, wildcard receivers, event queues, timers,
 * file descriptors, options and statistics.
 *
 * Conventions of every function, unless its comment says otherwise:
 * - 0 (LBM_OK) means success, -1 (LBM_FAILURE) failure; a function that returns a pointer returns NULL on failure. The
 *   reason stays in lbm_errnum() and lbm_errmsg() of the calling thread until its next failure.
 * - A NULL or unsuitable argument is LBM_EINVAL. What this version does not implement is LBM_EOPNOTSUPP.
 * - An object is made by its create call, which writes the handle through its first parameter (untouched on failure),
 *   belongs to the library and is freed by its delete call.
 * - Strings, options and payloads handed in are copied before the call returns; clientd pointers and functions are
 *   kept as they are. What a callback is handed is valid until it returns; messages may be kept with lbm_msg_retain().
 * - Any thread may call any function, attribute and properties objects being for one thread at a time.
 * - "Context thread: yes" marks what may be called in a callback that runs on the context's own thread or on that of
 *   one of its XSPs. "no" marks what would wait for that very thread: making, deleting and looking up objects of the
 *   context fails there with LBM_EOP, a send that would have to wait with LBM_EWOULDBLOCK, and the calls that process
 *   or dispatch events are not for callbacks at all. Application callbacks run on
 *   the context thread unless an event queue takes them; on a thread inside lbm_event_dispatch() everything is allowed
 *   except deleting the receiver whose message is being delivered.
 */
#ifndef LBM_LBM_H_INCLUDED
#define LBM_LBM_H_INCLUDED

#include <inttypes.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef LBMExpDLL
#define LBMExpDLL
#endif

struct in_addr;
struct sockaddr_in;

/** Version of the interface. lbm_version() tells the version of the library. */
#define LBM_VERS_MAJOR 6
#define LBM_VERS_MINOR 17
#define LBM_VERS_MAINT 0
#define LBM_VERS_SFX 0
#define LBM_VERS_TAG ""
#define LBM_VERS (LBM_VERS_MAJOR * 10000 + LBM_VERS_MINOR * 100 + LBM_VERS_MAINT)

/** printf and scanf conversions of size_t. */
#ifndef PRIuSZ
#define PRIuSZ "zu"
#endif
#define PRIuSZcast(x) (size_t)(x)
#ifndef SCNuSZ
#define SCNuSZ "zu"
#endif
#define SCNuSZcast(x) (size_t *)(x)

/** Results, error numbers and the modes of lbm_event_dispatch(). */
#define LBM_EINVAL 1                             /**< bad argument, option or value */
#define LBM_EWOULDBLOCK 2                        /**< a non-blocking send would have to wait */
#define LBM_ENOMEM 3                             /**< out of memory */
#define LBM_EOP 4                                /**< not possible in this state or on this thread */
#define LBM_EOS 5                                /**< a system call failed; the text has its reason */
#define LBM_ETIMEDOUT 6                          /**< the time given for waiting is over */
#define LBM_EDAEMONCONN 7                        /**< daemon mode, obsolete: never */
#define LBM_EUMENOREG 8                          /**< persistent source not registered yet */
#define LBM_EOPNOTSUPP 9                         /**< not implemented, or not for this object */
#define LBM_EINPROGRESS 10                       /**< the same operation is running */
#define LBM_ENO_QUEUE_REG 11                     /**< no registration with the queue */
#define LBM_ENO_STORE_REG 12                     /**< no registration with a store */
#define LBM_EMSG_SELECTOR 14                     /**< selector text cannot be parsed */
#define LBM_EVENT_QUEUE_BLOCK 0xFFFFFFFF         /**< dispatch until lbm_event_dispatch_unblock() */
#define LBM_EVENT_QUEUE_POLL 0x0                 /**< dispatch one event if there is one */
#define LBM_EVENT_QUEUE_SIZE_WARNING 0x1         /**< monitor: more events than queue_size_warning */
#define LBM_EVENT_QUEUE_DELAY_WARNING 0x2        /**< monitor: an event waited longer than queue_delay_warning */
#define LBM_EVENT_QUEUE_ENQUEUE_NOTIFICATION 0x3 /**< monitor: an event was queued */
#define LBM_EXTERNAL_STRUCT_FILL_SIZE 512        /**< bytes kept free in statistics structures */
enum {
    LBM_OK = 0,       /**< success */
    LBM_FAILURE = -1, /**< failure */
};

/** lbm_msg_t.type: what a receiver callback is told. Those of UME and UMQ belong to persistence and queuing. */
#define LBM_MSG_DATA 0                            /**< message */
#define LBM_MSG_EOS 1                             /**< the source is gone */
#define LBM_MSG_REQUEST 2                         /**< message that wants a response (lbm_msg_t.response) */
#define LBM_MSG_RESPONSE 3                        /**< response; comes to the request callback */
#define LBM_MSG_UNRECOVERABLE_LOSS 4              /**< one sequence number is lost for good */
#define LBM_MSG_UNRECOVERABLE_LOSS_BURST 5        /**< a long gap was given up; sequence_number is its first number */
#define LBM_MSG_NO_SOURCE_NOTIFICATION 6          /**< no source found after the threshold of queries */
#define LBM_MSG_UME_REGISTRATION_ERROR 7          /**< a store refused; data is a text */
#define LBM_MSG_UME_REGISTRATION_SUCCESS 8        /**< older form, never delivered */
#define LBM_MSG_UME_REGISTRATION_CHANGE 9         /**< the source changed its stores; data is a text */
#define LBM_MSG_UME_REGISTRATION_SUCCESS_EX 10    /**< registered with one store */
#define LBM_MSG_UME_REGISTRATION_COMPLETE_EX 11   /**< registered with enough stores */
#define LBM_MSG_UME_DEREGISTRATION_SUCCESS_EX 12  /**< one store has let go */
#define LBM_MSG_UME_DEREGISTRATION_COMPLETE_EX 13 /**< all stores have let go */
#define LBM_MSG_UMQ_REGISTRATION_ERROR 16         /**< a queue refused; data is a text */
#define LBM_MSG_UMQ_REGISTRATION_COMPLETE_EX 18   /**< registered with a queue */
#define LBM_MSG_UMQ_DEREGISTRATION_COMPLETE_EX 19 /**< a queue has let go */
#define LBM_MSG_BOS 20                            /**< first packet of a session */
#define LBM_MSG_UMQ_INDEX_ASSIGNMENT_ELIGIBILITY_ERROR 21             /**< start or stop failed; data is a text */
#define LBM_MSG_UMQ_INDEX_ASSIGNMENT_ELIGIBILITY_START_COMPLETE_EX 22 /**< indexes may come */
#define LBM_MSG_UMQ_INDEX_ASSIGNMENT_ELIGIBILITY_STOP_COMPLETE_EX 23  /**< no new indexes come */
#define LBM_MSG_UMQ_INDEX_ASSIGNED_EX 24                              /**< got an index */
#define LBM_MSG_UMQ_INDEX_RELEASED_EX 25                              /**< lost an index */
#define LBM_MSG_UMQ_INDEX_ASSIGNMENT_ERROR 26                         /**< no index; data is a text */
#define LBM_MSG_HF_RESET 27                                           /**< hot failover: numbering starts again */
#define LBM_MSG_RESERVED_1 28                                         /**< never delivered */

/** Flags of the send calls; undefined bits are ignored. */
#define LBM_MSG_START_BATCH 0x1    /**< first message of an explicit batch */
#define LBM_MSG_END_BATCH 0x2      /**< last message of an explicit batch */
#define LBM_MSG_COMPLETE_BATCH 0x3 /**< a batch of its own */
#define LBM_MSG_FLUSH 0x4          /**< send now what is batched */
#define LBM_SRC_NONBLOCK 0x8       /**< fail with LBM_EWOULDBLOCK rather than wait */
#define LBM_SRC_BLOCK_TEMP 0x10    /**< reserved */
#define LBM_SRC_BLOCK 0x20         /**< wait until the message is accepted (default) */
#define LBM_MSG_IOV_GATHER 0x40    /**< sendv: all segments form one message */
#define LBM_MSG_BUFF_ALLOC 0x100   /**< msg is a handle of lbm_src_alloc_msg_buff() */
#define LBM_RCV_NONBLOCK 0x8       /**< reserved */
#define LBM_RCV_BLOCK_TEMP 0x10    /**< reserved */
#define LBM_RCV_BLOCK 0x20         /**< reserved */

/** lbm_msg_t.flags: bits that describe a received message. */
#define LBM_MSG_FLAG_START_BATCH 0x1        /**< began an explicit batch */
#define LBM_MSG_FLAG_END_BATCH 0x2          /**< ended an explicit batch */
#define LBM_MSG_FLAG_HF_PASS_THROUGH 0x4    /**< outside of the hot-failover order */
#define LBM_MSG_FLAG_UME_RETRANSMIT 0x8     /**< recovered, not from the live stream */
#define LBM_MSG_FLAG_RETRANSMIT 0x8         /**< the same bit */
#define LBM_MSG_FLAG_IMMEDIATE 0x10         /**< immediate message */
#define LBM_MSG_FLAG_HF_DUPLICATE 0x20      /**< hot-failover duplicate */
#define LBM_MSG_FLAG_UMQ_REASSIGNED 0x40    /**< was assigned to another receiver before */
#define LBM_MSG_FLAG_UMQ_RESUBMITTED 0x80   /**< was submitted before */
#define LBM_MSG_FLAG_TOPICLESS 0x100        /**< immediate message without topic */
#define LBM_MSG_FLAG_DELIVERY_LATENCY 0x200 /**< internal */
#define LBM_MSG_FLAG_HF_OPTIONAL 0x400      /**< hot-failover message that may be missed */
#define LBM_MSG_FLAG_HF_32 0x800            /**< hf_sequence_number.u32 is set */
#define LBM_MSG_FLAG_HF_64 0x1000           /**< hf_sequence_number.u64 is set */
#define LBM_MSG_FLAG_OTR 0x2000             /**< recovered off the transport */
#define LBM_MSG_FLAG_UME_SRC_REGID 0x4000   /**< internal */
#define LBM_MSG_FLAG_NUMBERED_CHANNEL 0x1   /**< bit of lbm_msg_channel_info_t.flags: a number is set */

/** Bits of lbm_context_topic_resolution_request(). */
#define LBM_TOPIC_RES_REQUEST_GW_REMOTE_INTEREST 0x40    /**< routers: remote interest */
#define LBM_TOPIC_RES_REQUEST_CONTEXT_QUERY 0x20         /**< query contexts */
#define LBM_TOPIC_RES_REQUEST_CONTEXT_ADVERTISEMENT 0x10 /**< contexts advertise themselves */
#define LBM_TOPIC_RES_REQUEST_RESERVED1 0x08             /**< reserved */
#define LBM_TOPIC_RES_REQUEST_ADVERTISEMENT 0x04         /**< sources advertise */
#define LBM_TOPIC_RES_REQUEST_QUERY 0x02                 /**< receivers query */
#define LBM_TOPIC_RES_REQUEST_WILDCARD_QUERY 0x01        /**< wildcard receivers query */

/** Events of a source callback. Those of UME and UMQ belong to persistence and queuing. */
#define LBM_SRC_EVENT_CONNECT 1                           /**< a receiving context joined; ed is its text */
#define LBM_SRC_EVENT_DISCONNECT 2                        /**< a receiving context left; ed is its text */
#define LBM_SRC_EVENT_WAKEUP 3                            /**< a send refused with LBM_EWOULDBLOCK may be tried again */
#define LBM_SRC_EVENT_DAEMON_CONFIRM 4                    /**< never generated */
#define LBM_SRC_EVENT_UME_REGISTRATION_ERROR 5            /**< a store refused; ed is a text */
#define LBM_SRC_EVENT_UME_REGISTRATION_SUCCESS 6          /**< older form, never generated */
#define LBM_SRC_EVENT_UME_MESSAGE_STABLE 7                /**< older form, never generated */
#define LBM_SRC_EVENT_UME_DELIVERY_CONFIRMATION 8         /**< older form, never generated */
#define LBM_SRC_EVENT_UME_STORE_UNRESPONSIVE 9            /**< a store is silent; ed is its text */
#define LBM_SRC_EVENT_UME_MESSAGE_RECLAIMED 10            /**< a retained message is dropped */
#define LBM_SRC_EVENT_UME_REGISTRATION_SUCCESS_EX 11      /**< registered with one store */
#define LBM_SRC_EVENT_UME_REGISTRATION_COMPLETE_EX 12     /**< registered with enough stores to send */
#define LBM_SRC_EVENT_UME_MESSAGE_STABLE_EX 13            /**< safe in stores */
#define LBM_SRC_EVENT_UME_DELIVERY_CONFIRMATION_EX 14     /**< a receiver has consumed it */
#define LBM_SRC_EVENT_SEQUENCE_NUMBER_INFO 15             /**< numbers of the message being sent, inside the send */
#define LBM_SRC_EVENT_UMQ_REGISTRATION_ERROR 16           /**< a queue refused; ed is a text */
#define LBM_SRC_EVENT_UMQ_MESSAGE_ID_INFO 17              /**< id of the message being sent */
#define LBM_SRC_EVENT_UMQ_REGISTRATION_COMPLETE_EX 18     /**< registered with a queue */
#define LBM_SRC_EVENT_UMQ_MESSAGE_STABLE_EX 19            /**< safe in the queue */
#define LBM_SRC_EVENT_UMQ_ULB_MESSAGE_ASSIGNED_EX 20      /**< given to a receiver */
#define LBM_SRC_EVENT_UMQ_ULB_MESSAGE_REASSIGNED_EX 21    /**< given to another receiver */
#define LBM_SRC_EVENT_UMQ_ULB_MESSAGE_TIMEOUT_EX 22       /**< dropped, too old */
#define LBM_SRC_EVENT_UMQ_ULB_MESSAGE_COMPLETE_EX 23      /**< consumed by all application sets */
#define LBM_SRC_EVENT_UMQ_ULB_MESSAGE_CONSUMED_EX 24      /**< consumed by a receiver */
#define LBM_SRC_EVENT_UMQ_ULB_RECEIVER_REGISTRATION_EX 25 /**< receiver came */
#define LBM_SRC_EVENT_UMQ_ULB_RECEIVER_DEREGISTRATION_EX 26 /**< receiver went */
#define LBM_SRC_EVENT_UMQ_ULB_RECEIVER_READY_EX 27          /**< receiver can take messages */
#define LBM_SRC_EVENT_UMQ_ULB_RECEIVER_TIMEOUT_EX 28        /**< receiver is silent */
#define LBM_SRC_EVENT_FLIGHT_SIZE_NOTIFICATION 29           /**< in-flight limit crossed */
#define LBM_SRC_EVENT_UME_MESSAGE_RECLAIMED_EX 30           /**< a retained message is dropped */
#define LBM_SRC_EVENT_UME_DEREGISTRATION_SUCCESS_EX 31      /**< one store has let go */
#define LBM_SRC_EVENT_UME_DEREGISTRATION_COMPLETE_EX 32     /**< all stores have let go */
#define LBM_SRC_EVENT_UME_MESSAGE_NOT_STABLE 33             /**< not safe, given up */
#define LBM_SRC_EVENT_TIMESTAMP 34                          /**< transmit time of a datagram */

/** Events of the context_event_function option. */
#define LBM_CONTEXT_EVENT_UMQ_REGISTRATION_COMPLETE_EX 1   /**< registered with a broker */
#define LBM_CONTEXT_EVENT_UMQ_REGISTRATION_SUCCESS_EX 2    /**< the same, given with it */
#define LBM_CONTEXT_EVENT_UMQ_REGISTRATION_ERROR 3         /**< refused; ed is a text */
#define LBM_CONTEXT_EVENT_UMQ_INSTANCE_LIST_NOTIFICATION 4 /**< instances changed; ed is a text */

/** lbm_transport_source_info_t.type. */
#define LBM_TRANSPORT_TYPE_TCP 0x00     /**< TCP */
#define LBM_TRANSPORT_TYPE_LBTRU 0x01   /**< reliable unicast over UDP */
#define LBM_TRANSPORT_TYPE_LBTSMX 0x4   /**< shared memory, lowest latency */
#define LBM_TRANSPORT_TYPE_LBTRM 0x10   /**< reliable multicast over UDP */
#define LBM_TRANSPORT_TYPE_LBTIPC 0x40  /**< shared memory */
#define LBM_TRANSPORT_TYPE_LBTRDMA 0x20 /**< withdrawn */
#define LBM_TRANSPORT_TYPE_BROKER 0x80  /**< message broker */

/** Values of options in binary form; configuration files use their names. */
#define LBM_SECURITY_PROTOCOL_NONE 0x1  /**< plain TCP */
#define LBM_SECURITY_PROTOCOL_TLS 0x2   /**< TLS */
#define LBM_CTX_ATTR_COMPRESSION_NONE 0 /**< none */
#define LBM_CTX_ATTR_COMPRESSION_LZ4 1  /**< LZ4 */
#define LBM_CTX_ATTR_OP_EMBEDDED 1      /**< the context has its own thread */
#define LBM_CTX_ATTR_OP_DAEMON 2        /**< obsolete */
#define LBM_CTX_ATTR_OP_SEQUENTIAL 3    /**< the application runs lbm_context_process_events() */
#define LBM_CTX_ATTR_FDTYPE_POLL 1
#define LBM_CTX_ATTR_FDTYPE_SELECT 2
#define LBM_CTX_ATTR_FDTYPE_WSAEV 3
#define LBM_CTX_ATTR_FDTYPE_WINCPORT 4
#define LBM_CTX_ATTR_FDTYPE_WINCPORT_OV 5
#define LBM_CTX_ATTR_FDTYPE_EPOLL 6 /**< the one in use here */
#define LBM_CTX_ATTR_FDTYPE_DEVPOLL 7
#define LBM_CTX_ATTR_FDTYPE_KQUEUE 8
#define LBM_CTX_ATTR_FDTYPE_WINRIOCPORT 9
#define LBM_CTX_ATTR_MON_TRANSPORT_LBM 1                /**< as messages */
#define LBM_CTX_ATTR_MON_TRANSPORT_LBMSNMP 2            /**< to an SNMP agent */
#define LBM_CTX_ATTR_MON_FORMAT_CSV 1                   /**< comma-separated values */
#define LBM_CTX_ATTR_MON_FORMAT_PB 2                    /**< protocol buffers */
#define LBM_CTX_ATTR_IPC_RCV_THREAD_PEND 1              /**< sleep while nothing happens */
#define LBM_CTX_ATTR_IPC_RCV_THREAD_BUSY_WAIT 2         /**< poll without sleeping */
#define LBM_CTX_ATTR_FD_MANAGEMENT_BEHAVIOR_PEND 1      /**< sleep while nothing happens */
#define LBM_CTX_ATTR_FD_MANAGEMENT_BEHAVIOR_BUSY_WAIT 2 /**< poll without sleeping */
#define LBM_CTX_ATTR_RDMA_RCV_THREAD_PEND 1             /**< withdrawn */
#define LBM_CTX_ATTR_RDMA_RCV_THREAD_BUSY_WAIT 2        /**< withdrawn */
#define LBM_CTX_ATTR_RCV_THRD_POOL_CREATE 1             /**< withdrawn */
#define LBM_CTX_ATTR_RCV_THRD_POOL_DYNAMIC 2            /**< withdrawn */
#define LBM_CTX_ATTR_NET_COMPAT_MODE_DEFAULT 0x00000000 /**< none; the others name the release of the oldest peer */
#define LBM_CTX_ATTR_NET_COMPAT_MODE_LBM_3_6 0x00030600
#define LBM_CTX_ATTR_NET_COMPAT_MODE_LBM_3_6_1 0x00030601
#define LBM_CTX_ATTR_NET_COMPAT_MODE_LBM_3_6_2 0x00030602
#define LBM_CTX_ATTR_NET_COMPAT_MODE_LBM_3_6_5 0x00030605
#define LBM_CTX_ATTR_NET_COMPAT_MODE_LBM_4_0 0x00040000
#define LBM_CTX_ATTR_NET_COMPAT_MODE_LBM_4_0_1 0x00040001
#define LBM_CTX_ATTR_NET_COMPAT_MODE_LBM_4_1 0x00040100
#define LBM_CTX_ATTR_NET_COMPAT_MODE_LBM_4_1_1 0x00040101
#define LBM_CTX_ATTR_NET_COMPAT_MODE_LBM_4_1_2 0x00040102
#define LBM_CTX_ATTR_NET_COMPAT_MODE_LBM_4_1_3 0x00040103
#define LBM_CTX_ATTR_NET_COMPAT_MODE_LBM_4_2_1 0x00040201
#define LBM_CTX_ATTR_NET_COMPAT_MODE_LBM_4_2_2 0x00040202
#define LBM_CTX_ATTR_NET_COMPAT_MODE_LBM_4_2_3 0x00040203
#define LBM_CTX_ATTR_NET_COMPAT_MODE_LBM_4_2_4 0x00040204
#define LBM_CTX_ATTR_NET_COMPAT_MODE_LBM_4_2_5 0x00040205
#define LBM_CTX_ATTR_NET_COMPAT_MODE_LBM_4_2_6 0x00040206
#define LBM_CTX_ATTR_NET_COMPAT_MODE_LBM_4_2_7 0x00040207
#define LBM_CTX_ATTR_NET_COMPAT_MODE_LBM_4_2_8 0x00040208
#define LBM_CTX_ATTR_NET_COMPAT_MODE_UME_3_0 0x01030000
#define LBM_CTX_ATTR_NET_COMPAT_MODE_UME_3_0_1 0x01030001
#define LBM_CTX_ATTR_NET_COMPAT_MODE_UME_3_0_2 0x01030002
#define LBM_CTX_ATTR_NET_COMPAT_MODE_UME_3_1 0x01030100
#define LBM_CTX_ATTR_NET_COMPAT_MODE_UME_3_1_1 0x01030101
#define LBM_CTX_ATTR_NET_COMPAT_MODE_UME_3_1_2 0x01030102
#define LBM_CTX_ATTR_NET_COMPAT_MODE_UME_3_1_3 0x01030103
#define LBM_CTX_ATTR_NET_COMPAT_MODE_UME_3_2_1 0x01030201
#define LBM_CTX_ATTR_NET_COMPAT_MODE_UME_3_2_2 0x01030202
#define LBM_CTX_ATTR_NET_COMPAT_MODE_UME_3_2_3 0x01030203
#define LBM_CTX_ATTR_NET_COMPAT_MODE_UME_3_2_4 0x01030204
#define LBM_CTX_ATTR_NET_COMPAT_MODE_UME_3_2_5 0x01030205
#define LBM_CTX_ATTR_NET_COMPAT_MODE_UME_3_2_6 0x01030206
#define LBM_CTX_ATTR_NET_COMPAT_MODE_UME_3_2_7 0x01030207
#define LBM_CTX_ATTR_NET_COMPAT_MODE_UME_3_2_8 0x01030208
#define LBM_CTX_ATTR_NET_COMPAT_MODE_UMQ_1_0 0x02010000
#define LBM_CTX_ATTR_NET_COMPAT_MODE_UMQ_1_1 0x02010100
#define LBM_CTX_ATTR_NET_COMPAT_MODE_UMQ_1_1_1 0x02010101
#define LBM_CTX_ATTR_NET_COMPAT_MODE_UMQ_2_0 0x02020000
#define LBM_CTX_ATTR_NET_COMPAT_MODE_UMQ_2_0_1 0x02020001
#define LBM_CTX_ATTR_NET_COMPAT_MODE_UMQ_2_1_1 0x02020101
#define LBM_CTX_ATTR_NET_COMPAT_MODE_UMQ_2_1_3 0x02020103
#define LBM_CTX_ATTR_NET_COMPAT_MODE_UMQ_2_1_4 0x02020104
#define LBM_CTX_ATTR_NET_COMPAT_MODE_UMQ_2_1_5 0x02020105
#define LBM_CTX_ATTR_NET_COMPAT_MODE_UMQ_2_1_6 0x02020106
#define LBM_CTX_ATTR_NET_COMPAT_MODE_UMQ_2_1_7 0x02020107
#define LBM_CTX_ATTR_NET_COMPAT_MODE_UMQ_2_1_8 0x02020108
#define LBM_CTX_ATTR_NET_COMPAT_MODE_UMQ_2_1_9 0x02020109
#define LBM_CTX_ATTR_NET_COMPAT_MODE_UMQ_2_1_10 0x0202010a
#define LBM_CTX_ATTR_NET_COMPAT_MODE_UM_5_0 0x03050000
#define LBM_CTX_ATTR_NET_COMPAT_MODE_UM_5_0_1 0x03050001
#define LBM_CTX_ATTR_NET_COMPAT_MODE_UM_5_1 0x03050100
#define LBM_CTX_ATTR_NET_COMPAT_MODE_UM_5_1_1 0x03050101
#define LBM_CTX_ATTR_NET_COMPAT_MODE_UM_5_1_2 0x03050102
#define LBM_CTX_ATTR_NET_COMPAT_MODE_UM_5_2 0x03050200
#define LBM_CTX_ATTR_NET_COMPAT_MODE_UM_5_2_1 0x03050201
#define LBM_CTX_ATTR_NET_COMPAT_MODE_UM_5_2_2 0x03050202
#define LBM_SRC_TOPIC_ATTR_TRANSPORT_TCP 0                    /**< TCP */
#define LBM_SRC_TOPIC_ATTR_TRANSPORT_LBTRM 16                 /**< reliable multicast */
#define LBM_SRC_TOPIC_ATTR_TRANSPORT_LBTRU 1                  /**< reliable unicast */
#define LBM_SRC_TOPIC_ATTR_TRANSPORT_LBTIPC 64                /**< shared memory */
#define LBM_SRC_TOPIC_ATTR_TRANSPORT_LBTSMX 4                 /**< shared memory, lowest latency */
#define LBM_SRC_TOPIC_ATTR_TRANSPORT_LBTRDMA 32               /**< withdrawn */
#define LBM_SRC_TOPIC_ATTR_TRANSPORT_BROKER 128               /**< message broker */
#define LBM_SRC_TOPIC_ATTR_TCP_MULTI_RECV_NORMAL 0            /**< the slowest receiver sets the pace */
#define LBM_SRC_TOPIC_ATTR_TCP_MULTI_RECV_BOUNDED_LATENCY 1   /**< the fastest receiver sets the pace */
#define LBM_SRC_TOPIC_ATTR_TCP_MULTI_RECV_SOURCE_PACED 2      /**< the source never waits; slow receivers lose */
#define LBM_SRC_TOPIC_ATTR_TCP_MULTI_RECV_SEND_ORDER_SERIAL 0 /**< in the order of connecting */
#define LBM_SRC_TOPIC_ATTR_TCP_MULTI_RECV_SEND_ORDER_RANDOM 1 /**< in changing order */
#define LBM_SRC_TOPIC_ATTR_SSF_NONE 0                         /**< every receiver gets every topic of the session */
#define LBM_SRC_TOPIC_ATTR_SSF_INCLUSION 1                    /**< receivers get the topics they ask for */
#define LBM_SRC_TOPIC_ATTR_SSF_EXCLUSION 2                    /**< receivers get what they do not decline */
#define LBM_SRC_TOPIC_ATTR_SSF_ULB 3                          /**< load-balanced messages go to their receiver only */
#define LBM_SRC_TOPIC_ATTR_IMPLICIT_BATCH_TYPE_DEFAULT 0      /**< fixed limits */
#define LBM_SRC_TOPIC_ATTR_IMPLICIT_BATCH_TYPE_ADAPTIVE 1     /**< limits follow the rate */
#define LBM_SRC_TOPIC_ATTR_UME_STORE_BEHAVIOR_RR 0x0          /**< one store after the other */
#define LBM_SRC_TOPIC_ATTR_UME_STORE_BEHAVIOR_QC 0x1          /**< a quorum of stores */
#define LBM_SRC_TOPIC_ATTR_UME_QC_SQN_BEHAVIOR_LOWEST 0x0     /**< the lowest a store names */
#define LBM_SRC_TOPIC_ATTR_UME_QC_SQN_BEHAVIOR_MAJORITY 0x1   /**< the one most stores name */
#define LBM_SRC_TOPIC_ATTR_UME_QC_SQN_BEHAVIOR_HIGHEST 0x2    /**< the highest a store names */
#define LBM_SRC_TOPIC_ATTR_UME_STABLE_BEHAVIOR_ANY 0x0        /**< one store */
#define LBM_SRC_TOPIC_ATTR_UME_STABLE_BEHAVIOR_MAJORITY 0x1   /**< a quorum */
#define LBM_SRC_TOPIC_ATTR_UME_STABLE_BEHAVIOR_QUORUM 0x1     /**< a quorum */
#define LBM_SRC_TOPIC_ATTR_UME_STABLE_BEHAVIOR_ALL 0x2        /**< all */
#define LBM_SRC_TOPIC_ATTR_UME_STABLE_BEHAVIOR_ALL_ACTIVE 0x3 /**< all that answer, a quorum at least */
#define LBM_SRC_TOPIC_ATTR_UMQ_STABLE_BEHAVIOR_ANY 0x0        /**< one instance */
#define LBM_SRC_TOPIC_ATTR_UMQ_STABLE_BEHAVIOR_MAJORITY 0x1   /**< a quorum */
#define LBM_SRC_TOPIC_ATTR_UMQ_STABLE_BEHAVIOR_QUORUM 0x1     /**< a quorum */
#define LBM_SRC_TOPIC_ATTR_UMQ_STABLE_BEHAVIOR_ALL 0x2        /**< all */
#define LBM_SRC_TOPIC_ATTR_UMQ_STABLE_BEHAVIOR_ALL_ACTIVE 0x3 /**< all that answer, a quorum at least */
#define LBM_SRC_TOPIC_ATTR_LBTIPC_BEHAVIOR_SOURCE_PACED 0     /**< slow receivers lose */
#define LBM_SRC_TOPIC_ATTR_LBTIPC_BEHAVIOR_RECEIVER_PACED 1   /**< the source waits for receivers */
#define LBM_SRC_TOPIC_ATTR_UMQ_ULB_EVENT_MSG_CONSUME 0x1
#define LBM_SRC_TOPIC_ATTR_UMQ_ULB_EVENT_MSG_TIMEOUT 0x2
#define LBM_SRC_TOPIC_ATTR_UMQ_ULB_EVENT_MSG_ASSIGNMENT 0x4
#define LBM_SRC_TOPIC_ATTR_UMQ_ULB_EVENT_MSG_REASSIGNMENT 0x8
#define LBM_SRC_TOPIC_ATTR_UMQ_ULB_EVENT_MSG_COMPLETE 0x10
#define LBM_SRC_TOPIC_ATTR_UMQ_ULB_EVENT_RCV_TIMEOUT 0x20
#define LBM_SRC_TOPIC_ATTR_UMQ_ULB_EVENT_RCV_REGISTRATION 0x40
#define LBM_SRC_TOPIC_ATTR_UMQ_ULB_EVENT_RCV_DEREGISTRATION 0x80
#define LBM_SRC_TOPIC_ATTR_UMQ_ULB_EVENT_RCV_READY 0x100
#define LBM_SRC_TOPIC_ATTR_UMQ_ULB_EVENT_ALL 0x1FF
#define LBM_SRC_TOPIC_ATTR_UMQ_ULB_ASSIGNMENT_DEFAULT 0x0              /**< least loaded */
#define LBM_SRC_TOPIC_ATTR_UMQ_ULB_ASSIGNMENT_RANDOM 0x1               /**< at random */
#define LBM_SRC_TOPIC_ATTR_UMQ_ULB_LF_BEHAVIOR_IGNORED 0x0             /**< does not count */
#define LBM_SRC_TOPIC_ATTR_UMQ_ULB_LF_BEHAVIOR_PROVISIONED 0x1         /**< shared among sources */
#define LBM_SRC_TOPIC_ATTR_UMQ_ULB_LF_BEHAVIOR_DYNAMIC 0x2             /**< weighs the choice */
#define LBM_SRC_TOPIC_ATTR_UME_STABLE_EVENT_NONE 0x0                   /**< none */
#define LBM_SRC_TOPIC_ATTR_UME_STABLE_EVENT_PER_FRAGMENT 0x1           /**< for each fragment */
#define LBM_SRC_TOPIC_ATTR_UME_STABLE_EVENT_PER_MESSAGE 0x2            /**< for each message */
#define LBM_SRC_TOPIC_ATTR_UME_STABLE_EVENT_FRAG_AND_MSG 0x3           /**< for both */
#define LBM_SRC_TOPIC_ATTR_UME_CDELV_EVENT_NONE 0x0                    /**< none */
#define LBM_SRC_TOPIC_ATTR_UME_CDELV_EVENT_PER_FRAGMENT 0x1            /**< for each fragment */
#define LBM_SRC_TOPIC_ATTR_UME_CDELV_EVENT_PER_MESSAGE 0x2             /**< for each message */
#define LBM_SRC_TOPIC_ATTR_UME_CDELV_EVENT_FRAG_AND_MSG 0x3            /**< for both */
#define LBM_SRC_TOPIC_ATTR_SECURITY_PROTOCOL_NONE 1                    /**< plain TCP */
#define LBM_SRC_TOPIC_ATTR_SECURITY_PROTOCOL_TLS 2                     /**< TLS */
#define LBM_RCV_TOPIC_ATTR_UME_QC_SQN_BEHAVIOR_LOWEST 0x0              /**< the lowest a store names */
#define LBM_RCV_TOPIC_ATTR_UME_QC_SQN_BEHAVIOR_MAJORITY 0x1            /**< the one most stores name */
#define LBM_RCV_TOPIC_ATTR_UME_QC_SQN_BEHAVIOR_HIGHEST 0x2             /**< the highest a store names */
#define LBM_RCV_TOPIC_ATTR_TCP_ACTIVITY_TIMEOUT_SO_KEEPALIVE 0x1       /**< by keepalives of TCP */
#define LBM_RCV_TOPIC_ATTR_TCP_ACTIVITY_TIMEOUT_TIMER 0x2              /**< by a timer */
#define LBM_RCV_TOPIC_ATTR_CHANNEL_BEHAVIOR_DELIVER_MSGS 0x1           /**< to the callback of the receiver */
#define LBM_RCV_TOPIC_ATTR_CHANNEL_BEHAVIOR_DISCARD_MSGS 0x2           /**< dropped */
#define LBM_RCV_TOPIC_ATTR_UMQ_INDEX_ASSIGN_ELIGIBILITY_INELIGIBLE 0x0 /**< at first not */
#define LBM_RCV_TOPIC_ATTR_UMQ_INDEX_ASSIGN_ELIGIBILITY_ELIGIBLE 0x1   /**< from the start */
#define LBM_RCV_TOPIC_ATTR_UMQ_QUEUE_PARTICIPATION_NONE 0              /**< no queue messages */
#define LBM_RCV_TOPIC_ATTR_UMQ_QUEUE_PARTICIPATION_NORMAL 1            /**< queue messages */
#define LBM_RCV_TOPIC_ATTR_UMQ_QUEUE_PARTICIPATION_OBSERVER 2          /**< look at queues only */
#define LBM_RCV_TOPIC_ATTR_UMQ_HOLD_INTERVAL_FOREVER 0xFFFFFFFF        /**< without end */
#define LBM_RCV_TOPIC_ATTR_SECURITY_PROTOCOL_NONE 1                    /**< plain TCP */
#define LBM_RCV_TOPIC_ATTR_SECURITY_PROTOCOL_TLS 2                     /**< TLS */
#define LBM_FLIGHT_SIZE_BEHAVIOR_NOTIFY 0x0                            /**< report, go on */
#define LBM_FLIGHT_SIZE_BEHAVIOR_BLOCK 0x1                             /**< wait, or LBM_EWOULDBLOCK */
#define LBM_CTX_ATTR_INTEREST_MODE_FLOOD 0                             /**< everything */
#define LBM_CTX_ATTR_INTEREST_MODE_FILTER 1                            /**< what the context is interested in */

/** Sizes of the text buffers in structures, the NUL included, and other limits. */
#define LBM_MSG_MAX_SOURCE_LEN 128 /**< source strings */
#define LBM_MSG_MAX_TOPIC_LEN 256  /**< topics themselves have at most 246 characters */
#define LBM_MSG_MAX_STATE_LEN 32
#define LBM_UME_MAX_STORE_STRLEN 24
#define LBM_UMQ_MAX_QUEUE_STRLEN 256
#define LBM_UMQ_MAX_TOPIC_STRLEN 256
#define LBM_UMQ_MAX_APPSET_STRLEN 256
#define LBM_MAX_CONTEXT_NAME_LEN 128
#define LBM_MAX_EVENT_QUEUE_NAME_LEN 128
#define LBM_MAX_UME_STORES 25 /**< of a source */
#define LBM_MAX_UME_GROUPS 5  /**< of a source */
#define LBM_UMQ_ULB_MAX_RECEIVER_STRLEN 32
#define LBM_UMQ_MAX_INDEX_LEN 216 /**< bytes of an index */
#define LBM_UMQ_USER_NAME_LENGTH_MAX 127
#define LBM_UMQ_PASSWORD_LENGTH_MAX 15
#define LBM_UMM_NUM_SERVERS_MAX 16
#define LBM_UMM_USER_NAME_LENGTH_MAX 100
#define LBM_UMM_APP_NAME_LENGTH_MAX 100
#define LBM_UMM_PASSWORD_LENGTH_MAX 100
#define LBM_UMM_SERVER_LENGTH_MAX 32
#define LBM_HMAC_BLOCK_SZ 20 /**< bytes */
#define LBM_MAX_GATEWAY_NAME_LEN 128
#define LBM_OTID_BLOCK_SZ 32            /**< bytes of an originating transport id */
#define LBM_CONTEXT_INSTANCE_BLOCK_SZ 8 /**< bytes of a context instance */
#define LBM_CONFIG_OPTIONS_STR_LEN 128

/** Bits of lbm_register_fd(). */
#define LBM_FD_EVENT_READ 0x1     /**< readable */
#define LBM_FD_EVENT_WRITE 0x2    /**< writable */
#define LBM_FD_EVENT_EXCEPT 0x4   /**< urgent data */
#define LBM_FD_EVENT_ACCEPT 0x8   /**< a connection waits */
#define LBM_FD_EVENT_CLOSE 0x10   /**< closed by the peer */
#define LBM_FD_EVENT_CONNECT 0x20 /**< connected */
#define LBM_FD_EVENT_ALL 0x3f     /**< all of them */

/** Levels of log lines, most urgent first, and the size limits of log files. */
#define LBM_LOG_EMERG 1                            /**< unusable */
#define LBM_LOG_ALERT 2                            /**< needs action at once */
#define LBM_LOG_CRIT 3                             /**< critical */
#define LBM_LOG_ERR 4                              /**< something failed */
#define LBM_LOG_WARNING 5                          /**< something is doubtful */
#define LBM_LOG_NOTICE 6                           /**< uncommon but fine */
#define LBM_LOG_INFO 7                             /**< information */
#define LBM_LOG_DEBUG 8                            /**< for developers */
#define LBM_LOG_ROLLOVER_SIZE_MAX 4000             /**< daemon logs, MB */
#define LBM_DEBUG_LOG_ROLLOVER_SIZE_MAX 0xFFFFFFFF /**< debug log, bytes */

/** Events of the former daemon mode. Never generated. */
#define LBM_DAEMON_EVENT_CONNECTED 1
#define LBM_DAEMON_EVENT_CONNECT_ERROR 2
#define LBM_DAEMON_EVENT_DISCONNECTED 3
#define LBM_DAEMON_EVENT_CONNECT_TIMEOUT 4

/** Which member of the union of a statistics structure counts, and flags of topic statistics. */
#define LBM_TRANSPORT_STAT_TCP 0                 /**< member tcp */
#define LBM_TRANSPORT_STAT_LBTRM 16              /**< member lbtrm */
#define LBM_TRANSPORT_STAT_DAEMON 0xFF           /**< obsolete */
#define LBM_TRANSPORT_STAT_LBTRU 1               /**< member lbtru */
#define LBM_TRANSPORT_STAT_LBTIPC 64             /**< member lbtipc */
#define LBM_TRANSPORT_STAT_LBTSMX 4              /**< member lbtsmx */
#define LBM_TRANSPORT_STAT_LBTRDMA 32            /**< withdrawn */
#define LBM_TRANSPORT_STAT_BROKER 128            /**< member broker */
#define LBM_RCV_TOPIC_STATS_FLAG_NO_SOURCE 0x0   /**< no source yet */
#define LBM_RCV_TOPIC_STATS_FLAG_SRC_CREATED 0x1 /**< joined this source */
#define LBM_RCV_TOPIC_STATS_FLAG_SRC_DELETED 0x2 /**< left this source */
#define LBM_RCV_TOPIC_STATS_FLAG_SRC_VALID 1     /**< older name of SRC_CREATED */

/** Events of the resolver, used by daemons. */
#define LBM_SRS_INTEREST_REMOVE 0
#define LBM_SRS_INTEREST_ADD 1
#define LBM_SYMBOL_TYPE_TOPIC 0
#define LBM_SYMBOL_TYPE_PATTERN 1
#define LBM_RESOLVER_EVENT_ADVERTISEMENT_TYPE 0x01 /**< a source advertises */
#define LBM_RESOLVER_EVENT_ADVERTISEMENT_FLAGS_LJ 0x00000001
#define LBM_RESOLVER_EVENT_ADVERTISEMENT_FLAGS_UME 0x00000002
#define LBM_RESOLVER_EVENT_ADVERTISEMENT_FLAGS_UMQ 0x00000004
#define LBM_RESOLVER_EVENT_ADVERTISEMENT_FLAGS_ULB 0x00000008
#define LBM_RESOLVER_EVENT_ADVERTISEMENT_FLAGS_EVC 0x00000010
#define LBM_RESOLVER_EVENT_INFO_CAPABILITY_VERSION_FLAG_UME 0x1
#define LBM_RESOLVER_EVENT_INFO_CAPABILITY_VERSION_FLAG_UMQ 0x2
#define LBM_RESOLVER_EVENT_INFO_INFO_DOMAIN_ID_PRESENT_FLAG 0x1ULL
#define LBM_RESOLVER_EVENT_INFO_INFO_SOURCE_ID_PRESENT_FLAG 0x2ULL
#define LBM_RESOLVER_EVENT_INFO_INFO_SOURCE_ID_TYPE_PRESENT_FLAG 0x4ULL
#define LBM_RESOLVER_EVENT_INFO_INFO_VERSION_PRESENT_FLAG 0x8ULL
#define LBMR_RESOLVER_EVENT_INFO_SRC_TYPE_APPLICATION 0
#define LBMR_RESOLVER_EVENT_INFO_SRC_TYPE_TNWGD 1
#define LBMR_RESOLVER_EVENT_INFO_SRC_TYPE_STORE 2

/** How a wildcard receiver compares: the pattern_type option. */
#define LBM_WILDCARD_RCV_PATTERN_TYPE_PCRE 1   /**< Perl-compatible expression (default) */
#define LBM_WILDCARD_RCV_PATTERN_TYPE_REGEX 2  /**< POSIX extended expression; deprecated */
#define LBM_WILDCARD_RCV_PATTERN_TYPE_APP_CB 3 /**< the application compares; deprecated */

/** Bits in the structures of source events. */
#define LBM_SRC_EVENT_WAKEUP_FLAG_NORMAL 0x1                                     /**< of a source */
#define LBM_SRC_EVENT_WAKEUP_FLAG_MIM 0x2                                        /**< of multicast immediate sends */
#define LBM_SRC_EVENT_WAKEUP_FLAG_UIM 0x4                                        /**< of unicast immediate sends */
#define LBM_SRC_EVENT_WAKEUP_FLAG_REQUEST 0x8                                    /**< of unicast requests */
#define LBM_SRC_EVENT_WAKEUP_FLAG_RESPONSE 0x10                                  /**< of responses */
#define LBM_SRC_EVENT_UMQ_ULB_MESSAGE_TIMEOUT_EX_FLAG_TOTAL_LIFETIME_EXPIRED 0x1 /**< its lifetime is over */
#define LBM_SRC_EVENT_UMQ_ULB_MESSAGE_TIMEOUT_EX_FLAG_EXPLICIT 0x2               /**< the receiver gave it back */
#define LBM_SRC_EVENT_UMQ_ULB_MESSAGE_TIMEOUT_EX_FLAG_DISCARD 0x4                /**< the receiver discarded it */
#define LBM_SRC_EVENT_UMQ_ULB_MESSAGE_TIMEOUT_EX_FLAG_MAX_REASSIGNS 0x8          /**< reassigned too often */
#define LBM_SRC_EVENT_UMQ_ULB_MESSAGE_REASSIGNED_EX_FLAG_EXPLICIT 0x1            /**< the receiver gave it back */
#define LBM_SRC_EVENT_FLIGHT_SIZE_NOTIFICATION_TYPE_UME 0x1                      /**< of persistence */
#define LBM_SRC_EVENT_FLIGHT_SIZE_NOTIFICATION_TYPE_ULB 0x2                      /**< of load balancing */
#define LBM_SRC_EVENT_FLIGHT_SIZE_NOTIFICATION_TYPE_UMQ 0x3                      /**< of a queue */
#define LBM_SRC_EVENT_FLIGHT_SIZE_NOTIFICATION_STATE_OVER 0x1                    /**< above the limit */
#define LBM_SRC_EVENT_FLIGHT_SIZE_NOTIFICATION_STATE_UNDER 0x2                   /**< below it again */
#define LBM_SRC_EVENT_UME_REGISTRATION_SUCCESS_EX_FLAG_OLD 0x1                   /**< known to the store */
#define LBM_SRC_EVENT_UME_REGISTRATION_SUCCESS_EX_FLAG_NOACKS 0x2                /**< the store reports no stability */
#define LBM_SRC_EVENT_UME_REGISTRATION_SUCCESS_EX_FLAG_RPP 0x4                   /**< receivers set the pace */
#define LBM_SRC_EVENT_UME_REGISTRATION_COMPLETE_EX_FLAG_QUORUM 0x1               /**< by a quorum */
#define LBM_SRC_EVENT_UME_MESSAGE_STABLE_EX_FLAG_INTRAGROUP_STABLE 0x1           /**< within a group */
#define LBM_SRC_EVENT_UME_MESSAGE_STABLE_EX_FLAG_INTERGROUP_STABLE 0x2           /**< over the groups */
#define LBM_SRC_EVENT_UME_MESSAGE_STABLE_EX_FLAG_STABLE 0x4                      /**< as configured */
#define LBM_SRC_EVENT_UME_MESSAGE_STABLE_EX_FLAG_STORE 0x8                       /**< store members are set */
#define LBM_SRC_EVENT_UME_MESSAGE_STABLE_EX_FLAG_WHOLE_MESSAGE_STABLE 0x10       /**< with all fragments */
#define LBM_SRC_EVENT_UME_MESSAGE_STABLE_EX_FLAG_USER 0x20                       /**< declared by the application */
#define LBM_SRC_EVENT_UME_MESSAGE_NOT_STABLE_FLAG_STORE 0x8                      /**< store members are set */
#define LBM_SRC_EVENT_UME_MESSAGE_NOT_STABLE_FLAG_LOSS 0x40                      /**< lost on the way */
#define LBM_SRC_EVENT_UME_MESSAGE_NOT_STABLE_FLAG_TIMEOUT 0x80                   /**< out of time */
#define LBM_SRC_EVENT_UME_DELIVERY_CONFIRMATION_EX_FLAG_UNIQUEACKS 0x1           /**< as many receivers as wanted */
#define LBM_SRC_EVENT_UME_DELIVERY_CONFIRMATION_EX_FLAG_UREGID 0x2               /**< id chosen by the receiver */
#define LBM_SRC_EVENT_UME_DELIVERY_CONFIRMATION_EX_FLAG_OOD 0x4   /**< receiver delivers in arrival order */
#define LBM_SRC_EVENT_UME_DELIVERY_CONFIRMATION_EX_FLAG_EXACK 0x8 /**< explicit acknowledgement */
#define LBM_SRC_EVENT_UME_DELIVERY_CONFIRMATION_EX_FLAG_WHOLE_MESSAGE_CONFIRMED 0x10 /**< with all fragments */
#define LBM_SRC_EVENT_UME_MESSAGE_RECLAIMED_EX_FLAG_FORCED 0x1                       /**< before it was stable */
#define LBM_SRC_EVENT_UMQ_REGISTRATION_COMPLETE_EX_FLAG_QUORUM 0x1                   /**< by a quorum */
#define LBM_SRC_EVENT_UMQ_MESSAGE_STABLE_EX_FLAG_INTRAGROUP_STABLE 0x1               /**< within a group */
#define LBM_SRC_EVENT_UMQ_MESSAGE_STABLE_EX_FLAG_INTERGROUP_STABLE 0x2               /**< over the groups */
#define LBM_SRC_EVENT_UMQ_MESSAGE_STABLE_EX_FLAG_STABLE 0x4                          /**< as configured */
#define LBM_SRC_EVENT_UMQ_MESSAGE_STABLE_EX_FLAG_USER 0x8                            /**< declared by the application */

/** Persistence: flight size kinds and flags of callbacks. */
#define LBM_FLIGHT_SIZE_TYPE_UME 0x1 /**< of persistence */
#define LBM_FLIGHT_SIZE_TYPE_ULB 0x2 /**< of load balancing */
#define LBM_FLIGHT_SIZE_TYPE_UMQ 0x3 /**< of a queue */
#define LBM_UME_RCV_RECOVERY_INFO_EX_FLAG_SRC_SID 0x1
#define LBM_UME_LIVENESS_RECEIVER_UNRESPONSIVE_FLAG_TMO 0x1 /**< silent */
#define LBM_UME_LIVENESS_RECEIVER_UNRESPONSIVE_FLAG_EOF 0x2 /**< connection closed */

/** lbm_src_send_ex_info_t.flags: the members that are set and the events that are wanted. */
#define LBM_SRC_SEND_EX_FLAG_UME_CLIENTD 0x1                   /**< ume_msg_clientd is set */
#define LBM_SRC_SEND_EX_FLAG_UMQ_CLIENTD 0x1                   /**< the same bit */
#define LBM_SRC_SEND_EX_FLAG_SEQUENCE_NUMBER_INFO 0x2          /**< report the numbers of this message */
#define LBM_SRC_SEND_EX_FLAG_SEQUENCE_NUMBER_INFO_FRAGONLY 0x4 /**< report them if it is fragmented */
#define LBM_SRC_SEND_EX_FLAG_APPHDR_CHAIN 0x8                  /**< apphdr_chain is set */
#define LBM_SRC_SEND_EX_FLAG_UMQ_MESSAGE_ID_INFO 0x10          /**< report the id of this message */
#define LBM_SRC_SEND_EX_FLAG_CHANNEL 0x20                      /**< channel_info is set */
#define LBM_SRC_SEND_EX_FLAG_UMQ_INDEX 0x40                    /**< umq_index is set */
#define LBM_SRC_SEND_EX_FLAG_UMQ_TOTAL_LIFETIME 0x80           /**< umq_total_lifetime is set */
#define LBM_SRC_SEND_EX_FLAG_HF_OPTIONAL 0x100                 /**< receivers may miss it */
#define LBM_SRC_SEND_EX_FLAG_PROPERTIES 0x200                  /**< properties is set */
#define LBM_SRC_SEND_EX_FLAG_HF_32 0x400                       /**< hf_sqn.u32 is set */
#define LBM_SRC_SEND_EX_FLAG_HF_64 0x800                       /**< hf_sqn.u64 is set */

/** lbm_ssrc_send_ex_info_t.flags. */
#define LBM_SSRC_SEND_EX_FLAG_UME_CLIENTD 0x1                   /**< ume_msg_clientd is set */
#define LBM_SSRC_SEND_EX_FLAG_SEQUENCE_NUMBER_INFO 0x2          /**< report the numbers of this message */
#define LBM_SSRC_SEND_EX_FLAG_SEQUENCE_NUMBER_INFO_FRAGONLY 0x4 /**< report them if it is fragmented */
#define LBM_SSRC_SEND_EX_FLAG_CHANNEL 0x20                      /**< channel is set */
#define LBM_SSRC_SEND_EX_FLAG_PROPERTIES 0x200                  /**< mprop_int_* are set */
#define LBM_SSRC_SEND_EX_FLAG_REBUILD_BUFFER 0x1000             /**< write the header anew */
#define LBM_SSRC_SEND_EX_FLAG_UPDATE_CHANNEL 0x2000             /**< change the channel in the header */
#define LBM_SSRC_SEND_EX_FLAG_UPDATE_PROPERTY_VALUES 0x4000     /**< change the property values in the header */
#define LBM_SSRC_SEND_EX_FLAG_USER_SUPPLIED_BUFFER 0x8000       /**< the payload is usr_supplied_buffer */
#define SSRC_DEFAULT_MAX_MSG_LEN 368                            /**< bytes of a buffer by default */

/** Types of message properties. Numbers have the size of the type, strings end in NUL. */
#define LBM_MSG_PROPERTY_NONE 0x0          /**< end of the iteration */
#define LBM_MSG_PROPERTY_BOOLEAN 0x1       /**< 1 byte */
#define LBM_MSG_PROPERTY_BYTE 0x2          /**< 8 bits */
#define LBM_MSG_PROPERTY_SHORT 0x3         /**< 16 bits */
#define LBM_MSG_PROPERTY_INT 0x4           /**< 32 bits */
#define LBM_MSG_PROPERTY_LONG 0x5          /**< 64 bits */
#define LBM_MSG_PROPERTY_FLOAT 0x6         /**< 32 bits */
#define LBM_MSG_PROPERTY_DOUBLE 0x7        /**< 64 bits */
#define LBM_MSG_PROPERTY_STRING 0x8        /**< text */
#define LBM_MSG_PROPERTIES_MAX_NAMELEN 250 /**< characters of a name */

/** lbm_apphdr_chain_elem_t.type. */
#define LBM_CHAIN_ELEM_CHANNEL_NUMBER 0x1
#define LBM_CHAIN_ELEM_HF_SQN 0x2
#define LBM_CHAIN_ELEM_GW_INFO 0x3
#define LBM_CHAIN_ELEM_APPHDR 0x4
#define LBM_CHAIN_ELEM_USER_DATA 0x5 /**< bytes of the application; the others are internal */
#define LBM_CHAIN_ELEM_PROPERTIES_LENGTH 0x6

/** Bits in the structures that receivers get about persistence and queuing. */
#define LBM_MSG_UME_REGISTRATION_SUCCESS_EX_FLAG_OLD 0x1
#define LBM_MSG_UME_REGISTRATION_SUCCESS_EX_FLAG_NOCACHE 0x2
#define LBM_MSG_UME_REGISTRATION_SUCCESS_EX_FLAG_RPP 0x4
#define LBM_MSG_UME_REGISTRATION_SUCCESS_EX_FLAG_SRC_SID 0x8
#define LBM_MSG_UME_REGISTRATION_SUCCESS_EX_FLAG_RPP_IS_NON_BLOCKING 0x10
#define LBM_MSG_UME_REGISTRATION_SUCCESS_EX_FLAG_PROACTIVE_KEEPALIVE 0x20
#define LBM_MSG_UME_REGISTRATION_SUCCESS_EX_FLAG_RANGED_RXREQ 0x40
#define LBM_MSG_UME_REGISTRATION_COMPLETE_EX_FLAG_QUORUM 0x1
#define LBM_MSG_UME_REGISTRATION_COMPLETE_EX_FLAG_RXREQMAX 0x2
#define LBM_MSG_UME_REGISTRATION_COMPLETE_EX_FLAG_SRC_SID 0x4
#define LBM_MSG_UME_DEREGISTRATION_SUCCESS_EX_FLAG_RPP 0x1
#define LBM_MSG_UMQ_REGISTRATION_COMPLETE_EX_FLAG_QUORUM 0x1
#define LBM_MSG_UMQ_REGISTRATION_COMPLETE_EX_FLAG_ULB 0x2
#define LBM_MSG_UMQ_DEREGISTRATION_COMPLETE_EX_FLAG_ULB 0x1
#define LBM_MSG_UMQ_INDEX_ASSIGNED_EX_FLAG_ULB 0x1
#define LBM_MSG_UMQ_INDEX_ASSIGNED_EX_FLAG_REQUESTED 0x2
#define LBM_MSG_UMQ_INDEX_RELEASED_EX_FLAG_ULB 0x1
#define LBM_MSG_UMQ_INDEX_ASSIGNMENT_ELIGIBILITY_STOP_COMPLETE_EX_FLAG_ULB 0x1
#define LBM_MSG_UMQ_INDEX_ASSIGNMENT_ELIGIBILITY_START_COMPLETE_EX_FLAG_ULB 0x1
#define LBM_MSG_UMQ_REASSIGN_FLAG_DISCARD 0x1 /**< drop it instead */

/** Bits in the structures of context events. */
#define LBM_CONTEXT_EVENT_UMQ_REGISTRATION_COMPLETE_EX_FLAG_QUORUM 0x1

/** lbm_umm_info_t.flags. */
#define LBM_UMM_INFO_FLAGS_USE_SSL 0x1 /**< over SSL */

/** Flags of context calls. */
#define LBM_NAK_CUTOFF_FLAG_DISABLE_NAKS 0x01            /**< send no more NAKs */
#define LBM_NAK_CUTOFF_FLAG_ENABLE_NAKS 0x02             /**< send NAKs again */
#define LBM_PROC_EVENT_EX_FLAG_USER_TIME 0x0001          /**< time_val is the clock; msec must be 0 */
#define LBM_PROC_EVENT_EX_FLAG_NO_MAIN_LOOP_MUTEX 0x0002 /**< no other thread uses the context */
#define LBM_SRC_COST_FUNCTION_REJECT 0xffffffff          /**< result of a cost callback: never join this source */

/** Names and values with which JMS bodies and headers travel as message properties. */
#define LBM_TEXTMESSAGE 0
#define LBM_BYTEMESSAGE 1
#define LBM_MAPMESSAGE 2
#define LBM_MESSAGE 3
#define LBM_OBJECTMESSAGE 4
#define LBM_STREAMMESSAGE 5
#define LBM_JMSDeliveryMode "JMSDeliveryMode"
#define LBM_JMSExpiration "JMSExpiration"
#define LBM_JMSPriority "JMSPriority"
#define LBM_JMSMessageID "JMSMessageID"
#define LBM_JMSTimestamp "JMSTimestamp"
#define LBM_JMSCorrelationID "JMSCorrelationID"
#define LBM_JMSType "JMSType"
#define LBM_JMSRedelivered "JMSRedelivered"
#define LBM_LBMMessageType "JMS_UM_MessageType"
#define LBM_JMSTopicType "JMSTopicType"
#define LBM_JMSReplyToName "JMSReplyToName"
#define LBM_JMSReplyToWildcard "JMSReplyToWildcard"
#define LBM_JMSReplyToType "JMSReplyToType"

/** Queuing: message states and asynchronous operations. */
#define LBM_UMQ_INDEX_FLAG_NUMERIC 0x1 /**< the index is a number of 64 bits */
#define LBM_UMQ_QUEUE_MSG_STATUS_UNKNOWN 0
#define LBM_UMQ_QUEUE_MSG_STATUS_UNASSIGNED 1
#define LBM_UMQ_QUEUE_MSG_STATUS_ASSIGNED 2
#define LBM_UMQ_QUEUE_MSG_STATUS_REASSIGNING 3
#define LBM_UMQ_QUEUE_MSG_STATUS_CONSUMED 4
#define LBM_ASYNC_OP_TYPE_CTX_UMQ_QUEUE_TOPIC_LIST 1
#define LBM_ASYNC_OP_TYPE_RCV_UMQ_QUEUE_MSG_LIST 2
#define LBM_ASYNC_OP_TYPE_RCV_UMQ_QUEUE_MSG_RETRIEVE 3
#define LBM_ASYNC_OP_STATUS_IN_PROGRESS 1 /**< still running; the others are final */
#define LBM_ASYNC_OP_STATUS_COMPLETE 128
#define LBM_ASYNC_OP_STATUS_ERROR 129
#define LBM_ASYNC_OP_STATUS_CANCELED 130
#define LBM_ASYNC_OP_INVALID_HANDLE 0
#define LBM_ASYNC_OPERATION_CANCEL_FLAG_NONBLOCK 0x1
#define LBM_ASYNC_OPERATION_STATUS_FLAG_NONBLOCK 0x1
#define LBM_ASYNC_OP_INFO_FLAG_INLINE 0x1 /**< the callback runs inside the call */
#define LBM_ASYNC_OP_INFO_FLAG_FIRST 0x2  /**< first callback */
#define LBM_ASYNC_OP_INFO_FLAG_LAST 0x4   /**< last callback */
#define LBM_ASYNC_OP_INFO_FLAG_ONLY 6     /**< first and last */

typedef unsigned int lbm_uint_t;
typedef unsigned long int lbm_ulong_t; /**< 64 bits on Linux */
typedef unsigned short int lbm_ushort_t;
typedef unsigned char lbm_uchar_t;
typedef uint8_t lbm_uint8_t;
typedef uint16_t lbm_uint16_t;
typedef uint32_t lbm_uint32_t;
typedef int32_t lbm_int32_t;
typedef uint64_t lbm_uint64_t;
typedef int64_t lbm_int64_t;
typedef int lbm_handle_t; /**< file descriptor */
typedef lbm_uint64_t lbm_umq_regid_t;
typedef lbm_uint64_t lbm_async_operation_handle_t;

/** Objects. Their contents are private to the library. */
typedef struct lbm_context_t_stct lbm_context_t; /**< messaging engine */
typedef struct lbm_src_channel_info_t_stct lbm_src_channel_info_t;
typedef struct lbm_apphdr_chain_t_stct lbm_apphdr_chain_t;
typedef struct lbm_event_queue_t_stct lbm_event_queue_t;       /**< queue of callbacks */
typedef struct lbm_msg_properties_t_stct lbm_msg_properties_t; /**< named values */
typedef struct lbm_buff_t_stct lbm_buff_t;                     /**< internal */
typedef struct lbm_wildcard_rcv_t_stct lbm_wildcard_rcv_t;     /**< subscriber of a pattern */
typedef struct lbm_hf_rcv_t_stct lbm_hf_rcv_t;                 /**< hot-failover receiver */
typedef struct lbm_hfx_attr_t_stct lbm_hfx_attr_t;
typedef struct lbm_hfx_t_stct lbm_hfx_t; /**< hot-failover group over contexts */
typedef struct lbm_hfx_rcv_t_stct lbm_hfx_rcv_t;
typedef struct lbm_topic_t_stct lbm_topic_t; /**< topic of a source or a receiver; never deleted by the application */
typedef struct lbm_src_t_stct lbm_src_t;     /**< publisher */
typedef struct lbm_ssrc_t_stct lbm_ssrc_t;   /**< smart source */
typedef struct lbm_rcv_t_stct lbm_rcv_t;     /**< subscriber */
typedef struct lbm_request_t_stct lbm_request_t;   /**< request waiting for responses */
typedef struct lbm_response_t_stct lbm_response_t; /**< way back to a requester */
typedef struct lbm_ume_rcv_ack_t_stct lbm_ume_rcv_ack_t;
typedef struct lbm_context_attr_t_stct lbm_context_attr_t;
typedef struct lbm_src_topic_attr_t_stct lbm_src_topic_attr_t;
typedef struct lbm_rcv_topic_attr_t_stct lbm_rcv_topic_attr_t;
typedef struct lbm_wildcard_rcv_attr_t_stct lbm_wildcard_rcv_attr_t;
typedef struct lbm_event_queue_attr_t_stct lbm_event_queue_attr_t;
typedef struct lbm_apphdr_chain_iter_t_stct lbm_apphdr_chain_iter_t;
typedef struct lbm_umq_msg_selector_t_stct lbm_umq_msg_selector_t;
typedef struct lbm_xsp_t_stct lbm_xsp_t; /**< additional receiving thread */
typedef struct lbm_xsp_attr_t_stct lbm_xsp_attr_t;

/** Structures and unions defined below. */
typedef struct lbm_iovec_t_stct lbm_iovec_t;
typedef struct lbm_ipv4_address_mask_t_stct lbm_ipv4_address_mask_t;
typedef struct lbm_timeval_t_stct lbm_timeval_t;
typedef struct lbm_timespec_t_stct lbm_timespec_t;
typedef struct lbm_src_event_wakeup_t_stct lbm_src_event_wakeup_t;
typedef struct lbm_src_event_flight_size_notification_t_stct lbm_src_event_flight_size_notification_t;
typedef struct lbm_src_event_ume_registration_t_stct lbm_src_event_ume_registration_t;
typedef struct lbm_src_event_ume_registration_ex_t_stct lbm_src_event_ume_registration_ex_t;
typedef struct lbm_src_event_ume_registration_complete_ex_t_stct lbm_src_event_ume_registration_complete_ex_t;
typedef struct lbm_src_event_ume_deregistration_ex_t_stct lbm_src_event_ume_deregistration_ex_t;
typedef struct lbm_src_event_timestamp_info_t_stct lbm_src_event_timestamp_info_t;
typedef struct lbm_msg_ume_registration_t_stct lbm_msg_ume_registration_t;
typedef struct lbm_msg_ume_registration_ex_t_stct lbm_msg_ume_registration_ex_t;
typedef struct lbm_msg_ume_registration_complete_ex_t_stct lbm_msg_ume_registration_complete_ex_t;
typedef struct lbm_msg_ume_deregistration_ex_t_stct lbm_msg_ume_deregistration_ex_t;
typedef struct lbm_src_event_ume_ack_info_t_stct lbm_src_event_ume_ack_info_t;
typedef struct lbm_src_event_ume_ack_ex_info_t_stct lbm_src_event_ume_ack_ex_info_t;
typedef struct lbm_flight_size_inflight_t_stct lbm_flight_size_inflight_t;
typedef struct lbm_umq_index_info_t_stct lbm_umq_index_info_t;
typedef struct lbm_msg_umq_index_assignment_eligibility_stop_complete_ex_t_stct
    lbm_msg_umq_index_assignment_eligibility_stop_complete_ex_t;
typedef struct lbm_msg_umq_index_assigned_ex_t_stct lbm_msg_umq_index_assigned_ex_t;
typedef struct lbm_msg_umq_index_released_ex_t_stct lbm_msg_umq_index_released_ex_t;
typedef struct lbm_msg_umq_index_assignment_eligibility_start_complete_ex_t_stct
    lbm_msg_umq_index_assignment_eligibility_start_complete_ex_t;
typedef struct lbm_umq_msg_total_lifetime_info_t_stct lbm_umq_msg_total_lifetime_info_t;
typedef union lbm_hf_sequence_number_t_stct lbm_hf_sequence_number_t;
typedef struct lbm_umq_msgid_t_stct lbm_umq_msgid_t;
typedef struct lbm_umq_queue_application_set_t_stct lbm_umq_queue_application_set_t;
typedef struct lbm_umq_queue_topic_t_stct lbm_umq_queue_topic_t;
typedef struct lbm_msg_t_stct lbm_msg_t;
typedef struct lbm_resolver_event_info_t_stct lbm_resolver_event_info_t;
typedef struct lbm_resolver_event_advertisement_t_stct lbm_resolver_event_advertisement_t;
typedef struct lbm_resolver_event_func_t_stct lbm_resolver_event_func_t;
typedef struct lbm_mem_mgt_callbacks_t_stct lbm_mem_mgt_callbacks_t;
typedef struct lbm_process_events_info_t_stct lbm_process_events_info_t;
typedef struct lbm_src_send_ex_info_t_stct lbm_src_send_ex_info_t;
typedef struct lbm_ssrc_send_ex_info_t_stct lbm_ssrc_send_ex_info_t;
typedef struct lbm_ume_rcv_regid_ex_func_info_t_stct lbm_ume_rcv_regid_ex_func_info_t;
typedef struct lbm_src_event_sequence_number_info_t_stct lbm_src_event_sequence_number_info_t;
typedef struct lbm_ume_rcv_recovery_info_ex_func_info_t_stct lbm_ume_rcv_recovery_info_ex_func_info_t;
typedef struct lbm_src_event_umq_message_id_info_t_stct lbm_src_event_umq_message_id_info_t;
typedef struct lbm_context_event_umq_registration_ex_t_stct lbm_context_event_umq_registration_ex_t;
typedef struct lbm_context_event_umq_registration_complete_ex_t_stct lbm_context_event_umq_registration_complete_ex_t;
typedef struct lbm_src_event_umq_registration_complete_ex_t_stct lbm_src_event_umq_registration_complete_ex_t;
typedef struct lbm_msg_umq_registration_complete_ex_t_stct lbm_msg_umq_registration_complete_ex_t;
typedef struct lbm_src_event_umq_stability_ack_info_ex_t_stct lbm_src_event_umq_stability_ack_info_ex_t;
typedef struct lbm_msg_umq_deregistration_complete_ex_t_stct lbm_msg_umq_deregistration_complete_ex_t;
typedef struct lbm_src_event_umq_ulb_receiver_info_ex_t_stct lbm_src_event_umq_ulb_receiver_info_ex_t;
typedef struct lbm_src_event_umq_ulb_message_info_ex_t_stct lbm_src_event_umq_ulb_message_info_ex_t;
typedef struct lbm_datagram_acceleration_recv_info_t_stct lbm_datagram_acceleration_recv_info_t;
typedef struct lbm_datagram_acceleration_func_t_stct lbm_datagram_acceleration_func_t;
typedef struct lbm_str_hash_func_t_stct lbm_str_hash_func_t;
typedef struct lbm_str_hash_func_ex_t_stct lbm_str_hash_func_ex_t;
typedef struct lbm_src_notify_func_t_stct lbm_src_notify_func_t;
typedef struct lbm_rcv_batch_notify_func_t_stct lbm_rcv_batch_notify_func_t;
typedef struct lbm_wildcard_rcv_compare_func_t_stct lbm_wildcard_rcv_compare_func_t;
typedef struct lbm_ume_rcv_regid_func_t_stct lbm_ume_rcv_regid_func_t;
typedef struct lbm_ume_rcv_regid_ex_func_t_stct lbm_ume_rcv_regid_ex_func_t;
typedef struct lbm_ume_src_force_reclaim_func_t_stct lbm_ume_src_force_reclaim_func_t;
typedef struct lbm_mim_unrecloss_func_t_stct lbm_mim_unrecloss_func_t;
typedef struct lbm_ume_rcv_recovery_info_ex_func_t_stct lbm_ume_rcv_recovery_info_ex_func_t;
typedef struct lbm_ume_store_entry_t_stct lbm_ume_store_entry_t;
typedef struct lbm_ucast_resolver_entry_t_stct lbm_ucast_resolver_entry_t;
typedef struct lbm_resolver_service_entry_t_stct lbm_resolver_service_entry_t;
typedef struct lbm_transport_broker_entry_t_stct lbm_transport_broker_entry_t;
typedef struct lbm_ume_store_name_entry_t_stct lbm_ume_store_name_entry_t;
typedef struct lbm_ume_store_group_entry_t_stct lbm_ume_store_group_entry_t;
typedef struct lbm_rcv_src_notification_func_t_stct lbm_rcv_src_notification_func_t;
typedef struct ume_liveness_receiving_context_t_stct ume_liveness_receiving_context_t;
typedef struct lbm_ume_ctx_rcv_ctx_notification_func_t_stct lbm_ume_ctx_rcv_ctx_notification_func_t;
typedef struct lbm_umq_queue_entry_t_stct lbm_umq_queue_entry_t;
typedef struct lbm_umq_ulb_receiver_type_entry_t_stct lbm_umq_ulb_receiver_type_entry_t;
typedef struct lbm_umq_ulb_application_set_attr_t_stct lbm_umq_ulb_application_set_attr_t;
typedef struct lbm_umq_ulb_receiver_type_attr_t_stct lbm_umq_ulb_receiver_type_attr_t;
typedef struct lbm_context_src_event_func_t_stct lbm_context_src_event_func_t;
typedef struct lbm_context_event_func_t_stct lbm_context_event_func_t;
typedef struct lbm_serialized_response_t_stct lbm_serialized_response_t;
typedef struct lbm_msg_fragment_info_t_stct lbm_msg_fragment_info_t;
typedef struct lbm_msg_gateway_info_t_stct lbm_msg_gateway_info_t;
typedef struct lbm_msg_channel_info_t_stct lbm_msg_channel_info_t;
typedef struct lbm_context_rcv_immediate_msgs_func_t_stct lbm_context_rcv_immediate_msgs_func_t;
typedef struct lbm_transport_source_info_t_stct lbm_transport_source_info_t;
typedef struct lbm_src_cost_func_t_stct lbm_src_cost_func_t;
typedef struct lbm_config_option_stct_t lbm_config_option_t;
typedef struct lbm_wildcard_rcv_create_func_t_stct lbm_wildcard_rcv_create_func_t;
typedef struct lbm_wildcard_rcv_delete_func_t_stct lbm_wildcard_rcv_delete_func_t;
typedef struct lbm_src_transport_stats_tcp_t_stct lbm_src_transport_stats_tcp_t;
typedef struct lbm_src_transport_stats_lbtrm_t_stct lbm_src_transport_stats_lbtrm_t;
typedef struct lbm_src_transport_stats_daemon_t_stct lbm_src_transport_stats_daemon_t;
typedef struct lbm_src_transport_stats_lbtru_t_stct lbm_src_transport_stats_lbtru_t;
typedef struct lbm_src_transport_stats_lbtipc_t_stct lbm_src_transport_stats_lbtipc_t;
typedef struct lbm_src_transport_stats_lbtsmx_t_stct lbm_src_transport_stats_lbtsmx_t;
typedef struct lbm_src_transport_stats_lbtrdma_t_stct lbm_src_transport_stats_lbtrdma_t;
typedef struct lbm_src_transport_stats_broker_t_stct lbm_src_transport_stats_broker_t;
typedef struct lbm_src_transport_stats_t_stct lbm_src_transport_stats_t;
typedef struct lbm_rcv_transport_stats_tcp_t_stct lbm_rcv_transport_stats_tcp_t;
typedef struct lbm_rcv_transport_stats_lbtrm_t_stct lbm_rcv_transport_stats_lbtrm_t;
typedef struct lbm_rcv_transport_stats_daemon_t_stct lbm_rcv_transport_stats_daemon_t;
typedef struct lbm_rcv_transport_stats_lbtru_t_stct lbm_rcv_transport_stats_lbtru_t;
typedef struct lbm_rcv_transport_stats_lbtipc_t_stct lbm_rcv_transport_stats_lbtipc_t;
typedef struct lbm_rcv_transport_stats_lbtsmx_t_stct lbm_rcv_transport_stats_lbtsmx_t;
typedef struct lbm_rcv_transport_stats_lbtrdma_t_stct lbm_rcv_transport_stats_lbtrdma_t;
typedef struct lbm_rcv_transport_stats_broker_t_stct lbm_rcv_transport_stats_broker_t;
typedef struct lbm_rcv_transport_stats_t_stct lbm_rcv_transport_stats_t;
typedef struct lbm_event_queue_stats_t_stct lbm_event_queue_stats_t;
typedef struct lbm_context_stats_t_stct lbm_context_stats_t;
typedef struct lbm_rcv_topic_stats_t_stct lbm_rcv_topic_stats_t;
typedef struct lbm_wildcard_rcv_stats_t_stct lbm_wildcard_rcv_stats_t;
typedef struct lbm_event_queue_cancel_cb_info_t_stct lbm_event_queue_cancel_cb_info_t;
typedef struct lbm_apphdr_chain_elem_t_stct lbm_apphdr_chain_elem_t;
typedef struct lbm_msg_properties_iter_t_stct lbm_msg_properties_iter_t;
typedef struct lbm_umm_info_t_stct lbm_umm_info_t;
typedef struct lbm_xsp_zero_transports_func_t_stct lbm_xsp_zero_transports_func_t;
typedef struct lbm_new_transport_info_t_stct lbm_new_transport_info_t;
typedef struct lbm_transport_mapping_func_t_stct lbm_transport_mapping_func_t;

/** One segment of a message. */
struct lbm_iovec_t_stct {
    char *iov_base;
    size_t iov_len; /**< bytes */
};

/** A network or an interface. */
struct lbm_ipv4_address_mask_t_stct {
    lbm_uint_t addr; /**< network order */
    int bits;        /**< prefix length, 0..32 */
};

/** Time of day since 1970, UTC. */
struct lbm_timeval_t_stct {
    lbm_ulong_t tv_sec;  /**< seconds */
    lbm_ulong_t tv_usec; /**< microseconds */
};

/** Time of day since 1970, UTC. */
struct lbm_timespec_t_stct {
    lbm_ulong_t tv_sec;  /**< seconds */
    lbm_ulong_t tv_nsec; /**< nanoseconds */
};

/** Which kind of send may be tried again. */
struct lbm_src_event_wakeup_t_stct {
    int flags; /**< LBM_SRC_EVENT_WAKEUP_FLAG_* */
};

struct lbm_src_event_flight_size_notification_t_stct {
    int type;
    int state;
};

struct lbm_src_event_ume_registration_t_stct {
    lbm_uint_t registration_id;
};

struct lbm_src_event_ume_registration_ex_t_stct {
    int flags;
    lbm_uint_t registration_id;
    lbm_uint_t sequence_number;
    lbm_ushort_t store_index; /**< position in the list of stores */
    char store[24];           /**< text "ip:port" or name */
};

struct lbm_src_event_ume_registration_complete_ex_t_stct {
    int flags;
    lbm_uint_t sequence_number;
};

struct lbm_src_event_ume_deregistration_ex_t_stct {
    int flags;
    lbm_uint32_t registration_id;
    lbm_uint_t sequence_number;
    lbm_ushort_t store_index; /**< position in the list of stores */
    char store[24];           /**< text "ip:port" or name */
};

/** Transmit time of a datagram. */
struct lbm_src_event_timestamp_info_t_stct {
    lbm_timespec_t hr_timestamp;
    lbm_uint_t sequence_number;
};

struct lbm_msg_ume_registration_t_stct {
    lbm_uint_t src_registration_id; /**< of the source */
    lbm_uint_t rcv_registration_id; /**< of the receiver */
};

struct lbm_msg_ume_registration_ex_t_stct {
    int flags;
    lbm_uint_t src_registration_id; /**< of the source */
    lbm_uint_t rcv_registration_id; /**< of the receiver */
    lbm_uint_t sequence_number;
    lbm_ushort_t store_index;    /**< position in the list of stores */
    char store[24];              /**< text "ip:port" or name */
    lbm_uint64_t src_session_id; /**< of the source */
};

struct lbm_msg_ume_registration_complete_ex_t_stct {
    int flags;
    lbm_uint_t sequence_number;
    lbm_uint64_t src_session_id; /**< of the source */
};

struct lbm_msg_ume_deregistration_ex_t_stct {
    int flags;
    lbm_uint_t src_registration_id; /**< of the source */
    lbm_uint_t rcv_registration_id; /**< of the receiver */
    lbm_uint_t sequence_number;
    lbm_ushort_t store_index; /**< position in the list of stores */
    char store[24];           /**< text "ip:port" or name */
};

struct lbm_src_event_ume_ack_info_t_stct {
    lbm_uint_t sequence_number;
    lbm_uint_t rcv_registration_id; /**< of the receiver */
    void *msg_clientd;              /**< given with the send */
};

struct lbm_src_event_ume_ack_ex_info_t_stct {
    int flags;
    lbm_uint_t sequence_number;
    lbm_uint_t rcv_registration_id; /**< of the receiver */
    char store[24];                 /**< text "ip:port" or name */
    void *msg_clientd;              /**< given with the send */
    lbm_ushort_t store_index;       /**< position in the list of stores */
};

struct lbm_flight_size_inflight_t_stct {
    int messages;
    lbm_uint64_t bytes; /**< payload bytes */
};

/** An index of queue messages. */
struct lbm_umq_index_info_t_stct {
    int flags;
    int reserved;
    char index[216];
    size_t index_len; /**< bytes */
};

struct lbm_msg_umq_index_assignment_eligibility_stop_complete_ex_t_stct {
    int flags;
    lbm_uint_t queue_id;
    char queue[256]; /**< name */
};

struct lbm_msg_umq_index_assigned_ex_t_stct {
    int flags;
    lbm_uint_t queue_id;
    char queue[256]; /**< name */
    lbm_umq_index_info_t index_info;
};

struct lbm_msg_umq_index_released_ex_t_stct {
    int flags;
    lbm_uint_t queue_id;
    char queue[256]; /**< name */
    lbm_umq_index_info_t index_info;
};

struct lbm_msg_umq_index_assignment_eligibility_start_complete_ex_t_stct {
    int flags;
    lbm_uint_t queue_id;
    char queue[256]; /**< name */
};

struct lbm_umq_msg_total_lifetime_info_t_stct {
    int flags;
    lbm_ulong_t umq_msg_total_lifetime; /**< milliseconds */
};

/** A hot-failover number of either width. */
union lbm_hf_sequence_number_t_stct {
    lbm_uint32_t u32;
    lbm_uint64_t u64;
};

struct lbm_umq_msgid_t_stct {
    lbm_umq_regid_t regid;
    lbm_uint64_t stamp;
};

struct lbm_umq_queue_application_set_t_stct {
    char appset_name[256];
    lbm_uint32_t *ids;
    int num_ids;
    lbm_ushort_t application_set_index;
    void *reserved;
};

struct lbm_umq_queue_topic_t_stct {
    char topic_name[256];
    lbm_umq_queue_application_set_t *appsets;
    int num_appsets;
    void *reserved;
};

typedef struct {
    lbm_umq_queue_topic_t *topic;
    int status;
    int flags;
} lbm_umq_queue_topic_status_t;

typedef struct {
    lbm_umq_queue_topic_status_t *topics;
    int num_topics;
} lbm_ctx_umq_queue_topic_list_info_t;

/**
 * A message or an event, as given to receiver callbacks. Members that do not apply are 0, NULL or empty; data has no
 * alignment. Members without a comment belong to the library.
 */
struct lbm_msg_t_stct {
    char source[128];     /**< source string of the session */
    char topic_name[256]; /**< topic */
    char copied_state[32];
    int type;                   /**< LBM_MSG_* */
    int flags;                  /**< LBM_MSG_FLAG_* */
    const char *data;           /**< payload or event structure */
    size_t len;                 /**< bytes at data */
    lbm_response_t *response;   /**< of a request; set to NULL to keep it beyond the message */
    lbm_uint_t sequence_number; /**< of the last fragment */
    long refcnt;
    size_t apphdr_len;
    lbm_ulong_t apphdr_code;
    lbm_timeval_t tsp; /**< arrival, of loop granularity */
    lbm_ushort_t hdrlen;
    const lbm_buff_t *buffer;
    const void *fragment_info;
    const char *apphdr_data;
    const void *source_clientd; /**< from source_notification_function or lbm_rcv_msg_source_clientd() */
    const void *umeack;
    const void *src_cd;
    lbm_uint_t osqn;
    lbm_msg_channel_info_t *channel_info; /**< NULL without channel */
    const void *umq_msgid;
    const void *umq_cr;
    const void *pdata;
    size_t plen;
    lbm_msg_properties_t *properties;            /**< belongs to the message */
    lbm_hf_sequence_number_t hf_sequence_number; /**< which width: see flags */
    const void *broker_msg_state;
    lbm_timespec_t hr_timestamp; /**< arrival at the network card, 0 if unknown */
};

typedef struct {
    lbm_umq_msgid_t msgid;
    lbm_msg_t *msg;
    void *clientd; /**< handed to the callback */
    int status;
    int flags;
} lbm_umq_queue_msg_status_t;

typedef struct {
    lbm_umq_queue_msg_status_t *msgs;
    lbm_uint64_t num_msgs;
} lbm_rcv_umq_queue_msg_list_info_t;

typedef struct {
    lbm_umq_queue_msg_status_t *msgs;
    int num_msgs;
} lbm_rcv_umq_queue_msg_retrieve_info_t;

typedef struct {
    int type;
    int status;
    int flags;
    lbm_async_operation_handle_t handle;
    union {
        lbm_ctx_umq_queue_topic_list_info_t *ctx_umq_queue_topic_list;
        lbm_rcv_umq_queue_msg_list_info_t *rcv_umq_queue_msg_list;
        lbm_rcv_umq_queue_msg_retrieve_info_t *rcv_umq_queue_msg_retrieve;
    } info;
} lbm_async_operation_info_t;

struct lbm_resolver_event_info_t_stct {
    lbm_uint64_t info_flags;
    lbm_uint32_t capability_flags;
    lbm_uint8_t source_type;
    lbm_uint32_t domain_id;
    lbm_uint32_t version;
    lbm_uint8_t source_id[8];
};

struct lbm_resolver_event_advertisement_t_stct {
    lbm_uint32_t flags;
    char topic_string[256];
    char transport_string[128];
    lbm_uint32_t topic_index;
    lbm_uint32_t source_domain_id;
    lbm_uint8_t otid[32];
    lbm_uint32_t source_type;
};

/** Event of the resolver, for daemons. Returns 0. Context thread. */
typedef lbm_uint32_t (*lbm_resolver_event_cb_func)(lbm_context_t *ctx, int event, const void *ed,
                                                   const lbm_resolver_event_info_t *info, void *clientd);

struct lbm_resolver_event_func_t_stct {
    lbm_resolver_event_cb_func event_cb_func;
    void *clientd; /**< handed to the callback */
};

/** Allocates for a smart source. Thread that calls it. */
typedef void *(*lbm_mem_mgt_malloc_cb_func)(size_t size, void *clientd);

/** Resizes for a smart source; NULL allocates. */
typedef void *(*lbm_mem_mgt_realloc_cb_func)(void *ptr, size_t size, void *clientd);

/** Frees for a smart source. */
typedef void (*lbm_mem_mgt_free_cb_func)(void *ptr, void *clientd);

/** Allocator of smart sources. */
struct lbm_mem_mgt_callbacks_t_stct {
    lbm_mem_mgt_malloc_cb_func malloc_cb_func;
    lbm_mem_mgt_realloc_cb_func realloc_cb_func;
    lbm_mem_mgt_free_cb_func free_cb_func;
    void *clientd; /**< handed to the callback */
};

/** Extras of lbm_context_process_events_ex(). */
struct lbm_process_events_info_t_stct {
    int flags;              /**< LBM_PROC_EVENT_EX_FLAG_* */
    lbm_timeval_t time_val; /**< the present time; must not go backwards */
};

/**
 * Progress of an asynchronous operation. Returns 0. Context thread, or inside the call with
 * LBM_ASYNC_OP_INFO_FLAG_INLINE.
 */
typedef int (*lbm_async_operation_function_cb)(lbm_async_operation_info_t *opinfo, void *clientd);

typedef struct {
    lbm_async_operation_function_cb func;
    lbm_event_queue_t *evq; /**< NULL: context thread */
    void *clientd;          /**< handed to the callback */
    int flags;
} lbm_async_operation_func_t;

/** Extras of a send. Only members whose flag is set are read. */
struct lbm_src_send_ex_info_t_stct {
    int flags; /**< LBM_SRC_SEND_EX_FLAG_* */
    void *ume_msg_clientd;
    lbm_src_channel_info_t *channel_info;
    lbm_apphdr_chain_t *apphdr_chain;
    lbm_umq_index_info_t *umq_index;
    lbm_umq_msg_total_lifetime_info_t *umq_total_lifetime;
    lbm_msg_properties_t *properties;
    lbm_hf_sequence_number_t hf_sqn;
    lbm_async_operation_func_t *async_opfunc;
};

/** Extras of a smart source send. */
struct lbm_ssrc_send_ex_info_t_stct {
    int flags;
    void *ume_msg_clientd;
    int mprop_int_cnt;
    char **mprop_int_keys;
    lbm_int32_t *mprop_int_vals;
    lbm_uint32_t channel;
    char *usr_supplied_buffer;
};

struct lbm_ume_rcv_regid_ex_func_info_t_stct {
    int flags;
    lbm_uint_t src_registration_id; /**< of the source */
    lbm_ushort_t store_index;       /**< position in the list of stores */
    void *source_clientd;
    char source[128]; /**< source string */
    char store[24];   /**< text "ip:port" or name */
};

/** Numbers of a sent message; the same number twice if it has one fragment. */
struct lbm_src_event_sequence_number_info_t_stct {
    int flags;
    lbm_uint_t first_sequence_number; /**< first fragment */
    lbm_uint_t last_sequence_number;  /**< last fragment */
    void *msg_clientd;                /**< given with the send */
};

/** Where recovery starts; low_sequence_number may be changed. */
struct lbm_ume_rcv_recovery_info_ex_func_info_t_stct {
    int flags;
    lbm_uint_t low_sequence_number;
    lbm_uint_t low_rxreq_max_sequence_number;
    lbm_uint_t high_sequence_number;
    void *source_clientd;
    char source[128];            /**< source string */
    lbm_uint64_t src_session_id; /**< of the source */
};

struct lbm_src_event_umq_message_id_info_t_stct {
    int flags;
    lbm_umq_msgid_t msg_id;
    void *msg_clientd; /**< given with the send */
};

struct lbm_context_event_umq_registration_ex_t_stct {
    int flags;
    lbm_umq_regid_t registration_id;
    lbm_uint_t queue_id;
    lbm_uint_t queue_instance_index;
    char queue_instance[24]; /**< text */
    char queue[256];         /**< name */
};

struct lbm_context_event_umq_registration_complete_ex_t_stct {
    int flags;
    lbm_umq_regid_t registration_id;
    lbm_uint_t queue_id;
    char queue[256]; /**< name */
};

struct lbm_src_event_umq_registration_complete_ex_t_stct {
    int flags;
    lbm_uint_t queue_id;
    char queue[256]; /**< name */
};

struct lbm_msg_umq_registration_complete_ex_t_stct {
    int flags;
    lbm_uint_t queue_id;
    lbm_uint_t assignment_id;
    char queue[256]; /**< name */
};

struct lbm_src_event_umq_stability_ack_info_ex_t_stct {
    int flags;
    lbm_umq_msgid_t msg_id;
    lbm_uint_t first_sequence_number; /**< first fragment */
    lbm_uint_t last_sequence_number;  /**< last fragment */
    lbm_uint_t queue_id;
    lbm_uint_t queue_instance_index;
    void *msg_clientd;       /**< given with the send */
    char queue_instance[24]; /**< text */
    char queue[256];         /**< name */
};

struct lbm_msg_umq_deregistration_complete_ex_t_stct {
    int flags;
    lbm_uint_t queue_id;
    char queue[256]; /**< name */
};

struct lbm_src_event_umq_ulb_receiver_info_ex_t_stct {
    int flags;
    lbm_umq_regid_t registration_id;
    lbm_uint_t assignment_id;
    lbm_uint_t application_set_index;
    char receiver[32]; /**< text */
};

struct lbm_src_event_umq_ulb_message_info_ex_t_stct {
    int flags;
    lbm_umq_msgid_t msg_id;
    lbm_umq_regid_t registration_id;
    lbm_uint_t first_sequence_number; /**< first fragment */
    lbm_uint_t last_sequence_number;  /**< last fragment */
    lbm_uint_t assignment_id;
    lbm_uint_t application_set_index;
    void *msg_clientd; /**< given with the send */
    char receiver[32]; /**< text */
};

struct lbm_datagram_acceleration_recv_info_t_stct {
    void *handle;
    void *clientd; /**< handed to the callback */
    char *buffer;
    uint32_t length;
    uint64_t timestamp;
};

/** Hooks of a network accelerator, by what they do; 0 means success. */
typedef int (*lbm_datagram_acceleration_init_function_t)(uint16_t api_version);

typedef int (*lbm_datagram_acceleration_open_function_t)(struct in_addr *interface_addr, int flags, void **device_out);

typedef int (*lbm_datagram_acceleration_close_function_t)(void *device);

typedef int (*lbm_datagram_acceleration_bind_function_t)(void *device, int flags, int port, void *context,
                                                         void **handle_out);

typedef int (*lbm_datagram_acceleration_unbind_function_t)(void *handle);

typedef int (*lbm_datagram_acceleration_mcast_join_function_t)(void *handle, struct in_addr *mcast_addr);

typedef int (*lbm_datagram_acceleration_mcast_leave_function_t)(void *handle, struct in_addr *mcast_addr);

typedef int (*lbm_datagram_acceleration_recvfrom_function_t)(void *device, int mode, char *buffer, size_t length,
                                                             struct sockaddr_in *sin_from, struct sockaddr_in *sin_to,
                                                             lbm_datagram_acceleration_recv_info_t *info);

typedef int (*lbm_datagram_acceleration_send_connect_function_t)(void *handle, const struct sockaddr_in *dest_sin,
                                                                 int flags, int ttl, void **send_handle_out);

typedef int (*lbm_datagram_acceleration_send_disconnect_function_t)(void *send_handle);

typedef int (*lbm_datagram_acceleration_send_function_t)(void *send_handle, const void *buffer, size_t length,
                                                         int flags);

typedef int (*lbm_datagram_acceleration_sendto_function_t)(void *device, struct sockaddr_in *sin, const void *buffer,
                                                           size_t length, int flags);

typedef int (*lbm_datagram_acceleration_getaddr_function_t)(void *device, struct sockaddr_in *sin);

/** Functions of a network accelerator. */
struct lbm_datagram_acceleration_func_t_stct {
    lbm_datagram_acceleration_init_function_t init;
    lbm_datagram_acceleration_open_function_t open;
    lbm_datagram_acceleration_close_function_t close;
    lbm_datagram_acceleration_bind_function_t bind;
    lbm_datagram_acceleration_unbind_function_t unbind;
    lbm_datagram_acceleration_mcast_join_function_t mcast_join;
    lbm_datagram_acceleration_mcast_leave_function_t mcast_leave;
    lbm_datagram_acceleration_recvfrom_function_t recvfrom;
    lbm_datagram_acceleration_send_connect_function_t send_connect;
    lbm_datagram_acceleration_send_disconnect_function_t send_disconnect;
    lbm_datagram_acceleration_send_function_t send;
    lbm_datagram_acceleration_sendto_function_t sendto;
    lbm_datagram_acceleration_getaddr_function_t getaddr;
};

/** Hash of a topic. Any thread that makes topics, and the context thread. */
typedef lbm_ulong_t (*lbm_str_hash_function_cb)(const char *str);

struct lbm_str_hash_func_t_stct {
    lbm_str_hash_function_cb hashfunc;
};

/**
 * Hash of a topic of strlen bytes, (size_t)-1 when not counted. Any thread that makes topics, and the context thread.
 */
typedef lbm_ulong_t (*lbm_str_hash_function_cb_ex)(const char *str, size_t strlen, void *clientd);

struct lbm_str_hash_func_ex_t_stct {
    lbm_str_hash_function_cb_ex hashfunc;
    void *clientd; /**< handed to the callback */
};

/** A source of any topic was discovered. Returns 0. Context thread. */
typedef int (*lbm_src_notify_function_cb)(const char *topic_str, const char *src_str, void *clientd);

struct lbm_src_notify_func_t_stct {
    lbm_src_notify_function_cb notifyfunc;
    void *clientd; /**< handed to the callback */
};

/** Internal. */
typedef void *(*lbm_rcv_batch_notify_func_start_cb)(void *clientd);

/** Internal. */
typedef void (*lbm_rcv_batch_notify_func_end_cb)(void *per_batch_clientd, void *clientd);

struct lbm_rcv_batch_notify_func_t_stct {
    lbm_rcv_batch_notify_func_start_cb start_notify;
    lbm_rcv_batch_notify_func_end_cb end_notify;
    void *clientd; /**< handed to the callback */
};

/** Does a topic match? 0 yes, 1 no. Context thread. */
typedef int (*lbm_wildcard_rcv_compare_function_cb)(const char *topic_str, void *clientd);

struct lbm_wildcard_rcv_compare_func_t_stct {
    lbm_wildcard_rcv_compare_function_cb compfunc;
    void *clientd; /**< handed to the callback */
};

/** Registration id for a store, 0 lets the store choose. Context thread. */
typedef lbm_uint_t (*lbm_ume_rcv_regid_function_cb)(const char *src_str, lbm_uint_t src_regid, void *clientd);

struct lbm_ume_rcv_regid_func_t_stct {
    lbm_ume_rcv_regid_function_cb func;
    void *clientd; /**< handed to the callback */
};

/** As lbm_ume_rcv_regid_function_cb, with details. */
typedef lbm_uint_t (*lbm_ume_rcv_regid_ex_function_cb)(lbm_ume_rcv_regid_ex_func_info_t *info, void *clientd);

struct lbm_ume_rcv_regid_ex_func_t_stct {
    lbm_ume_rcv_regid_ex_function_cb func;
    void *clientd; /**< handed to the callback */
};

/** A message was dropped before it was stable. Returns 0. Context thread or inside the send. */
typedef int (*lbm_ume_src_force_reclaim_function_cb)(const char *topic_str, lbm_uint_t seqnum, void *clientd);

struct lbm_ume_src_force_reclaim_func_t_stct {
    lbm_ume_src_force_reclaim_function_cb func;
    void *clientd; /**< handed to the callback */
};

/** A multicast immediate message is lost for good. Returns 0. Context thread. */
typedef int (*lbm_mim_unrecloss_function_cb)(const char *source_name, lbm_uint_t seqnum, void *clientd);

struct lbm_mim_unrecloss_func_t_stct {
    lbm_mim_unrecloss_function_cb func;
    void *clientd; /**< handed to the callback */
};

/** Recovery begins; the start may be changed. Returns 0. Context thread. */
typedef int (*lbm_ume_rcv_recovery_info_ex_function_cb)(lbm_ume_rcv_recovery_info_ex_func_info_t *info, void *clientd);

struct lbm_ume_rcv_recovery_info_ex_func_t_stct {
    lbm_ume_rcv_recovery_info_ex_function_cb func;
    void *clientd; /**< handed to the callback */
};

/** A persistent store. Address and port are in network order. */
struct lbm_ume_store_entry_t_stct {
    lbm_uint_t ip_address; /**< network order */
    lbm_ushort_t tcp_port; /**< network order */
    lbm_ushort_t group_index;
    lbm_uint_t registration_id;
    lbm_uint32_t domain_id;
};

/** One lbmrd of unicast topic resolution. Addresses and ports are in network order. */
struct lbm_ucast_resolver_entry_t_stct {
    lbm_ipv4_address_mask_t iface; /**< local address */
    lbm_uint_t resolver_ip;
    lbm_ushort_t source_port; /**< 0 = from the range */
    lbm_ushort_t destination_port;
};

/** An SRS. Addresses and ports are in network order. */
struct lbm_resolver_service_entry_t_stct {
    lbm_uint_t service_ip;
    lbm_ushort_t service_port;
    lbm_ipv4_address_mask_t iface;
    lbm_ushort_t source_port;
};

/** A broker. Address and port are in network order. */
struct lbm_transport_broker_entry_t_stct {
    lbm_uint_t broker_ip;
    lbm_ushort_t broker_port;
    lbm_ipv4_address_mask_t iface;
    lbm_ushort_t source_port;
};

struct lbm_ume_store_name_entry_t_stct {
    char name[128 + 1];
    lbm_ushort_t group_index;
    lbm_uint_t registration_id;
};

struct lbm_ume_store_group_entry_t_stct {
    lbm_ushort_t index;
    lbm_ushort_t group_size;
};

/** A receiver got a new source; the result becomes lbm_msg_t.source_clientd. Context thread. */
typedef void *(*lbm_rcv_src_notification_create_function_cb)(const char *source_name, void *clientd);

/**
 * A source of a receiver is gone; gets the pointer of the create callback. Returns 0. Context thread or the thread
 * that deletes the receiver.
 */
typedef int (*lbm_rcv_src_notification_delete_function_cb)(const char *source_name, void *clientd,
                                                           void *source_clientd);

struct lbm_rcv_src_notification_func_t_stct {
    lbm_rcv_src_notification_create_function_cb create_func;
    lbm_rcv_src_notification_delete_function_cb delete_func;
    void *clientd; /**< handed to the callback */
};

struct ume_liveness_receiving_context_t_stct {
    lbm_uint64_t regid;
    lbm_uint64_t session_id;
    int flag;
};

/** A receiving context is known; the result goes to the delete callback. Context thread. */
typedef void *(*lbm_ume_ctx_rcv_ctx_notification_create_function_cb)(const ume_liveness_receiving_context_t *rcv,
                                                                     void *clientd);

/** A receiving context is silent. Context thread. */
typedef int (*lbm_ume_ctx_rcv_ctx_notification_delete_function_cb)(const ume_liveness_receiving_context_t *rcv,
                                                                   void *clientd, void *source_clientd);

struct lbm_ume_ctx_rcv_ctx_notification_func_t_stct {
    lbm_ume_ctx_rcv_ctx_notification_create_function_cb create_func;
    lbm_ume_ctx_rcv_ctx_notification_delete_function_cb delete_func;
    void *clientd; /**< handed to the callback */
};

struct lbm_umq_queue_entry_t_stct {
    char name[256];
    lbm_umq_regid_t regid;
};

struct lbm_umq_ulb_receiver_type_entry_t_stct {
    lbm_ulong_t id;
    lbm_ushort_t application_set_index;
};

struct lbm_umq_ulb_application_set_attr_t_stct {
    lbm_ushort_t index;
    union {
        int d;
        lbm_ulong_t lu;
    } value;
};

struct lbm_umq_ulb_receiver_type_attr_t_stct {
    lbm_ulong_t id;
    union {
        int d;
        lbm_ulong_t lu;
    } value;
};

/** Event of the sends of a context that have no source. Returns 0. Context thread or dispatch thread. */
typedef int (*lbm_context_src_cb_proc)(lbm_context_t *ctx, int event, void *ed, void *clientd);

struct lbm_context_src_event_func_t_stct {
    lbm_context_src_cb_proc func;
    lbm_event_queue_t *evq; /**< NULL: context thread */
    void *clientd;          /**< handed to the callback */
};

/** Event of a context. Returns 0. Context thread or dispatch thread. */
typedef int (*lbm_context_event_cb_proc)(lbm_context_t *ctx, int event, void *ed, void *clientd);

struct lbm_context_event_func_t_stct {
    lbm_context_event_cb_proc func;
    lbm_event_queue_t *evq; /**< NULL: context thread */
    void *clientd;          /**< handed to the callback */
};

/** A response handle as bytes, to be taken to another process. */
struct lbm_serialized_response_t_stct {
    char serial_response[32];
};

/** Place of a fragment in its message. */
struct lbm_msg_fragment_info_t_stct {
    lbm_uint_t start_sequence_number; /**< of the first fragment */
    lbm_uint_t offset;                /**< bytes from the start */
    lbm_uint_t total_message_length;  /**< bytes */
};

struct lbm_msg_gateway_info_t_stct {
    lbm_uint_t sequence_number;
    char source[128]; /**< source string */
};

struct lbm_msg_channel_info_t_stct {
    int flags;
    lbm_uint32_t channel_number;
};

/** An immediate message that no receiver takes. Returns 0. Context thread or dispatch thread. */
typedef int (*lbm_immediate_msg_cb_proc)(lbm_context_t *ctx, lbm_msg_t *msg, void *clientd);

struct lbm_context_rcv_immediate_msgs_func_t_stct {
    lbm_immediate_msg_cb_proc func;
    lbm_event_queue_t *evq; /**< NULL: context thread */
    void *clientd;          /**< handed to the callback */
};

/** A transport session and a topic on it, taken apart. Addresses are in network order, all else in host order. */
struct lbm_transport_source_info_t_stct {
    int type; /**< LBM_TRANSPORT_TYPE_* */
    lbm_uint32_t src_ip;
    lbm_ushort_t src_port;      /**< TCP, LBT-RU, LBT-RM */
    lbm_ushort_t dest_port;     /**< LBT-RM */
    lbm_uint32_t mc_group;      /**< LBT-RM */
    lbm_uint32_t transport_id;  /**< LBT-IPC, LBT-SMX */
    lbm_uint32_t session_id;    /**< 0 = none */
    lbm_uint32_t topic_idx;     /**< 0 = none */
    lbm_uint32_t transport_idx; /**< unused */
};

/** Cost of a discovered source; LBM_SRC_COST_FUNCTION_REJECT refuses it. Context thread. */
typedef lbm_uint32_t (*lbm_src_cost_function_cb)(const char *topic, const lbm_transport_source_info_t *transport,
                                                 lbm_uint32_t hop_count, lbm_uint32_t cost, void *clientd);

struct lbm_src_cost_func_t_stct {
    lbm_src_cost_function_cb cost_cb;
    void *clientd; /**< handed to the callback */
};

/** One option as text, filled by the dump calls. */
struct lbm_config_option_stct_t {
    char type[128];  /**< scope */
    char oname[128]; /**< name */
    char val[128];   /**< value, cut at 127 characters */
};

/** A topic matched; attr may be changed before its receiver is made. Returns 0. Context thread. */
typedef int (*lbm_wildcard_rcv_create_function_cb)(const char *topic_str, lbm_rcv_topic_attr_t *attr, void *clientd);

struct lbm_wildcard_rcv_create_func_t_stct {
    lbm_wildcard_rcv_create_function_cb createfunc;
    void *clientd; /**< handed to the callback */
};

/** The receiver of a matched topic goes. Returns 0. Context thread. */
typedef int (*lbm_wildcard_rcv_delete_function_cb)(const char *topic_str, void *clientd);

struct lbm_wildcard_rcv_delete_func_t_stct {
    lbm_wildcard_rcv_delete_function_cb deletefunc;
    void *clientd; /**< handed to the callback */
};

struct lbm_src_transport_stats_tcp_t_stct {
    lbm_ulong_t num_clients;    /**< now */
    lbm_ulong_t bytes_buffered; /**< now, bytes waiting for clients */
};

struct lbm_src_transport_stats_lbtrm_t_stct {
    lbm_ulong_t msgs_sent;             /**< datagrams */
    lbm_ulong_t bytes_sent;            /**< bytes with headers */
    lbm_ulong_t txw_msgs;              /**< now, datagrams in the window */
    lbm_ulong_t txw_bytes;             /**< now, bytes in the window */
    lbm_ulong_t nak_pckts_rcved;       /**< packets */
    lbm_ulong_t naks_rcved;            /**< sequence numbers */
    lbm_ulong_t naks_ignored;          /**< refused: repaired a moment ago */
    lbm_ulong_t naks_shed;             /**< refused: rate limit */
    lbm_ulong_t naks_rx_delay_ignored; /**< refused: too early */
    lbm_ulong_t rxs_sent;              /**< datagrams sent again */
    lbm_ulong_t rctlr_data_msgs;       /**< now, datagrams held by the rate limit */
    lbm_ulong_t rctlr_rx_msgs;         /**< now, repairs held by the rate limit */
    lbm_ulong_t rx_bytes_sent;         /**< bytes sent again */
};

struct lbm_src_transport_stats_daemon_t_stct {
    lbm_ulong_t bytes_buffered; /**< now, bytes waiting for clients */
};

struct lbm_src_transport_stats_lbtru_t_stct {
    lbm_ulong_t msgs_sent;             /**< datagrams */
    lbm_ulong_t bytes_sent;            /**< bytes with headers */
    lbm_ulong_t nak_pckts_rcved;       /**< packets */
    lbm_ulong_t naks_rcved;            /**< sequence numbers */
    lbm_ulong_t naks_ignored;          /**< refused: repaired a moment ago */
    lbm_ulong_t naks_shed;             /**< refused: rate limit */
    lbm_ulong_t naks_rx_delay_ignored; /**< refused: too early */
    lbm_ulong_t rxs_sent;              /**< datagrams sent again */
    lbm_ulong_t num_clients;           /**< now */
    lbm_ulong_t rx_bytes_sent;         /**< bytes sent again */
};

struct lbm_src_transport_stats_lbtipc_t_stct {
    lbm_ulong_t num_clients; /**< now */
    lbm_ulong_t msgs_sent;   /**< datagrams */
    lbm_ulong_t bytes_sent;  /**< bytes with headers */
};

struct lbm_src_transport_stats_lbtsmx_t_stct {
    lbm_ulong_t num_clients; /**< now */
    lbm_ulong_t msgs_sent;   /**< datagrams */
    lbm_ulong_t bytes_sent;  /**< bytes with headers */
};

struct lbm_src_transport_stats_lbtrdma_t_stct {
    lbm_ulong_t num_clients; /**< now */
    lbm_ulong_t msgs_sent;   /**< datagrams */
    lbm_ulong_t bytes_sent;  /**< bytes with headers */
};

struct lbm_src_transport_stats_broker_t_stct {
    lbm_ulong_t msgs_sent;  /**< datagrams */
    lbm_ulong_t bytes_sent; /**< bytes with headers */
};

/** Statistics of the transport session of a source. */
struct lbm_src_transport_stats_t_stct {
    int type;         /**< LBM_TRANSPORT_STAT_* */
    char source[128]; /**< source string without topic index */
    union {
        lbm_src_transport_stats_tcp_t tcp;
        lbm_src_transport_stats_lbtrm_t lbtrm;
        lbm_src_transport_stats_daemon_t daemon;
        lbm_src_transport_stats_lbtru_t lbtru;
        lbm_src_transport_stats_lbtipc_t lbtipc;
        lbm_src_transport_stats_lbtsmx_t lbtsmx;
        lbm_src_transport_stats_lbtrdma_t lbtrdma;
        lbm_src_transport_stats_broker_t broker;
    } transport;
    char _fill[512]; /**< kept free */
};

struct lbm_rcv_transport_stats_tcp_t_stct {
    lbm_ulong_t bytes_rcved;             /**< bytes with headers */
    lbm_ulong_t lbm_msgs_rcved;          /**< messages and fragments */
    lbm_ulong_t lbm_msgs_no_topic_rcved; /**< of those, for topics without receiver */
    lbm_ulong_t lbm_reqs_rcved;          /**< of those, requests */
};

struct lbm_rcv_transport_stats_lbtrm_t_stct {
    lbm_ulong_t msgs_rcved;              /**< datagrams */
    lbm_ulong_t bytes_rcved;             /**< bytes with headers */
    lbm_ulong_t nak_pckts_sent;          /**< packets */
    lbm_ulong_t naks_sent;               /**< sequence numbers */
    lbm_ulong_t lost;                    /**< datagrams found missing */
    lbm_ulong_t ncfs_ignored;            /**< source refused: repaired a moment ago */
    lbm_ulong_t ncfs_shed;               /**< source refused: rate limit */
    lbm_ulong_t ncfs_rx_delay;           /**< source refused: too early */
    lbm_ulong_t ncfs_unknown;            /**< source refused: unknown reason */
    lbm_ulong_t nak_stm_min;             /**< ms from loss to repair */
    lbm_ulong_t nak_stm_mean;            /**< ms */
    lbm_ulong_t nak_stm_max;             /**< ms */
    lbm_ulong_t nak_tx_min;              /**< NAKs per repaired datagram */
    lbm_ulong_t nak_tx_mean;             /**< NAKs */
    lbm_ulong_t nak_tx_max;              /**< NAKs */
    lbm_ulong_t duplicate_data;          /**< datagrams seen twice */
    lbm_ulong_t unrecovered_txw;         /**< lost for good: left the window */
    lbm_ulong_t unrecovered_tmo;         /**< lost for good: time over */
    lbm_ulong_t lbm_msgs_rcved;          /**< messages and fragments */
    lbm_ulong_t lbm_msgs_no_topic_rcved; /**< of those, for topics without receiver */
    lbm_ulong_t lbm_reqs_rcved;          /**< of those, requests */
    lbm_ulong_t dgrams_dropped_size;     /**< wrong length */
    lbm_ulong_t dgrams_dropped_type;     /**< wrong packet type */
    lbm_ulong_t dgrams_dropped_version;  /**< wrong version */
    lbm_ulong_t dgrams_dropped_hdr;      /**< wrong header */
    lbm_ulong_t dgrams_dropped_other;    /**< otherwise wrong */
    lbm_ulong_t out_of_order;            /**< datagrams */
};

struct lbm_rcv_transport_stats_daemon_t_stct {
    lbm_ulong_t bytes_rcved; /**< bytes with headers */
};

struct lbm_rcv_transport_stats_lbtru_t_stct {
    lbm_ulong_t msgs_rcved;              /**< datagrams */
    lbm_ulong_t bytes_rcved;             /**< bytes with headers */
    lbm_ulong_t nak_pckts_sent;          /**< packets */
    lbm_ulong_t naks_sent;               /**< sequence numbers */
    lbm_ulong_t lost;                    /**< datagrams found missing */
    lbm_ulong_t ncfs_ignored;            /**< source refused: repaired a moment ago */
    lbm_ulong_t ncfs_shed;               /**< source refused: rate limit */
    lbm_ulong_t ncfs_rx_delay;           /**< source refused: too early */
    lbm_ulong_t ncfs_unknown;            /**< source refused: unknown reason */
    lbm_ulong_t nak_stm_min;             /**< ms from loss to repair */
    lbm_ulong_t nak_stm_mean;            /**< ms */
    lbm_ulong_t nak_stm_max;             /**< ms */
    lbm_ulong_t nak_tx_min;              /**< NAKs per repaired datagram */
    lbm_ulong_t nak_tx_mean;             /**< NAKs */
    lbm_ulong_t nak_tx_max;              /**< NAKs */
    lbm_ulong_t duplicate_data;          /**< datagrams seen twice */
    lbm_ulong_t unrecovered_txw;         /**< lost for good: left the window */
    lbm_ulong_t unrecovered_tmo;         /**< lost for good: time over */
    lbm_ulong_t lbm_msgs_rcved;          /**< messages and fragments */
    lbm_ulong_t lbm_msgs_no_topic_rcved; /**< of those, for topics without receiver */
    lbm_ulong_t lbm_reqs_rcved;          /**< of those, requests */
    lbm_ulong_t dgrams_dropped_size;     /**< wrong length */
    lbm_ulong_t dgrams_dropped_type;     /**< wrong packet type */
    lbm_ulong_t dgrams_dropped_version;  /**< wrong version */
    lbm_ulong_t dgrams_dropped_hdr;      /**< wrong header */
    lbm_ulong_t dgrams_dropped_sid;      /**< wrong session id */
    lbm_ulong_t dgrams_dropped_other;    /**< otherwise wrong */
};

struct lbm_rcv_transport_stats_lbtipc_t_stct {
    lbm_ulong_t msgs_rcved;              /**< datagrams */
    lbm_ulong_t bytes_rcved;             /**< bytes with headers */
    lbm_ulong_t lbm_msgs_rcved;          /**< messages and fragments */
    lbm_ulong_t lbm_msgs_no_topic_rcved; /**< of those, for topics without receiver */
    lbm_ulong_t lbm_reqs_rcved;          /**< of those, requests */
};

struct lbm_rcv_transport_stats_lbtsmx_t_stct {
    lbm_ulong_t msgs_rcved;              /**< datagrams */
    lbm_ulong_t bytes_rcved;             /**< bytes with headers */
    lbm_ulong_t lbm_msgs_rcved;          /**< messages and fragments */
    lbm_ulong_t lbm_msgs_no_topic_rcved; /**< of those, for topics without receiver */
    lbm_ulong_t reserved1;
};

struct lbm_rcv_transport_stats_lbtrdma_t_stct {
    lbm_ulong_t msgs_rcved;              /**< datagrams */
    lbm_ulong_t bytes_rcved;             /**< bytes with headers */
    lbm_ulong_t lbm_msgs_rcved;          /**< messages and fragments */
    lbm_ulong_t lbm_msgs_no_topic_rcved; /**< of those, for topics without receiver */
    lbm_ulong_t lbm_reqs_rcved;          /**< of those, requests */
};

struct lbm_rcv_transport_stats_broker_t_stct {
    lbm_ulong_t msgs_rcved;  /**< datagrams */
    lbm_ulong_t bytes_rcved; /**< bytes with headers */
};

/** Statistics of a transport session as a receiving context sees it. */
struct lbm_rcv_transport_stats_t_stct {
    int type;         /**< LBM_TRANSPORT_STAT_* */
    char source[128]; /**< source string without topic index */
    union {
        lbm_rcv_transport_stats_tcp_t tcp;
        lbm_rcv_transport_stats_lbtrm_t lbtrm;
        lbm_rcv_transport_stats_daemon_t daemon;
        lbm_rcv_transport_stats_lbtru_t lbtru;
        lbm_rcv_transport_stats_lbtipc_t lbtipc;
        lbm_rcv_transport_stats_lbtrdma_t lbtrdma;
        lbm_rcv_transport_stats_lbtsmx_t lbtsmx;
        lbm_rcv_transport_stats_broker_t broker;
    } transport;
    char _fill[512]; /**< kept free */
};

/**
 * Event queue statistics, by kind of event: events queued now, queued since the reset (_tot), and the time their
 * callbacks took in microseconds (_svc_min, _svc_mean, _svc_max). Counts need the option queue_count_enabled, times
 * queue_service_time_enabled, ages queue_age_enabled.
 */
struct lbm_event_queue_stats_t_stct {
    lbm_ulong_t data_msgs;
    lbm_ulong_t data_msgs_tot;
    lbm_ulong_t data_msgs_svc_min;
    lbm_ulong_t data_msgs_svc_mean;
    lbm_ulong_t data_msgs_svc_max;
    lbm_ulong_t resp_msgs;
    lbm_ulong_t resp_msgs_tot;
    lbm_ulong_t resp_msgs_svc_min;
    lbm_ulong_t resp_msgs_svc_mean;
    lbm_ulong_t resp_msgs_svc_max;
    lbm_ulong_t topicless_im_msgs;
    lbm_ulong_t topicless_im_msgs_tot;
    lbm_ulong_t topicless_im_msgs_svc_min;
    lbm_ulong_t topicless_im_msgs_svc_mean;
    lbm_ulong_t topicless_im_msgs_svc_max;
    lbm_ulong_t wrcv_msgs;
    lbm_ulong_t wrcv_msgs_tot;
    lbm_ulong_t wrcv_msgs_svc_min;
    lbm_ulong_t wrcv_msgs_svc_mean;
    lbm_ulong_t wrcv_msgs_svc_max;
    lbm_ulong_t io_events;
    lbm_ulong_t io_events_tot;
    lbm_ulong_t io_events_svc_min;
    lbm_ulong_t io_events_svc_mean;
    lbm_ulong_t io_events_svc_max;
    lbm_ulong_t timer_events;
    lbm_ulong_t timer_events_tot;
    lbm_ulong_t timer_events_svc_min;
    lbm_ulong_t timer_events_svc_mean;
    lbm_ulong_t timer_events_svc_max;
    lbm_ulong_t source_events;
    lbm_ulong_t source_events_tot;
    lbm_ulong_t source_events_svc_min;
    lbm_ulong_t source_events_svc_mean;
    lbm_ulong_t source_events_svc_max;
    lbm_ulong_t unblock_events;
    lbm_ulong_t unblock_events_tot;
    lbm_ulong_t cancel_events;
    lbm_ulong_t cancel_events_tot;
    lbm_ulong_t cancel_events_svc_min;
    lbm_ulong_t cancel_events_svc_mean;
    lbm_ulong_t cancel_events_svc_max;
    lbm_ulong_t context_source_events;
    lbm_ulong_t context_source_events_tot;
    lbm_ulong_t context_source_events_svc_min;
    lbm_ulong_t context_source_events_svc_mean;
    lbm_ulong_t context_source_events_svc_max;
    lbm_ulong_t events;     /**< now, all kinds */
    lbm_ulong_t events_tot; /**< all kinds */
    lbm_ulong_t age_min;    /**< microseconds in the queue */
    lbm_ulong_t age_mean;   /**< microseconds */
    lbm_ulong_t age_max;    /**< microseconds */
    lbm_ulong_t callback_events;
    lbm_ulong_t callback_events_tot;
    lbm_ulong_t callback_events_svc_min;
    lbm_ulong_t callback_events_svc_mean;
    lbm_ulong_t callback_events_svc_max;
};

/** Context statistics: topic resolution, sends that waited, loss. */
struct lbm_context_stats_t_stct {
    lbm_ulong_t tr_dgrams_sent;               /**< datagrams */
    lbm_ulong_t tr_bytes_sent;                /**< bytes */
    lbm_ulong_t tr_dgrams_rcved;              /**< datagrams */
    lbm_ulong_t tr_bytes_rcved;               /**< bytes */
    lbm_ulong_t tr_dgrams_dropped_ver;        /**< unknown version */
    lbm_ulong_t tr_dgrams_dropped_type;       /**< unknown type */
    lbm_ulong_t tr_dgrams_dropped_malformed;  /**< malformed */
    lbm_ulong_t tr_dgrams_send_failed;        /**< datagrams */
    lbm_ulong_t tr_src_topics;                /**< now */
    lbm_ulong_t tr_rcv_topics;                /**< now */
    lbm_ulong_t tr_rcv_unresolved_topics;     /**< now, without a source */
    lbm_ulong_t lbtrm_unknown_msgs_rcved;     /**< datagrams of sessions not joined */
    lbm_ulong_t lbtru_unknown_msgs_rcved;     /**< datagrams of sessions not joined */
    lbm_ulong_t send_blocked;                 /**< sends that waited */
    lbm_ulong_t send_would_block;             /**< sends refused with LBM_EWOULDBLOCK */
    lbm_ulong_t resp_blocked;                 /**< responses that waited */
    lbm_ulong_t resp_would_block;             /**< responses refused */
    lbm_ulong_t uim_dup_msgs_rcved;           /**< immediate messages seen twice */
    lbm_ulong_t uim_msgs_no_stream_rcved;     /**< immediate messages without stream */
    lbm_ulong_t fragments_lost;               /**< found missing */
    lbm_ulong_t fragments_unrecoverably_lost; /**< given up */
    lbm_ulong_t rcv_cb_svc_time_min;          /**< microseconds in a receiver callback */
    lbm_ulong_t rcv_cb_svc_time_max;          /**< microseconds */
    lbm_ulong_t rcv_cb_svc_time_mean;         /**< microseconds */
};

/** A receiver and one of its sources, for monitoring. */
struct lbm_rcv_topic_stats_t_stct {
    char topic[256];
    lbm_uint32_t flags;
    char source[128]; /**< source string */
    lbm_uint8_t otid[32];
    lbm_uint32_t topic_idx;
    lbm_uint64_t timestamp_sec;
    lbm_uint64_t timestamp_usec;
};

/** A wildcard receiver, for monitoring. */
struct lbm_wildcard_rcv_stats_t_stct {
    char pattern[256];
    lbm_uint8_t type;
};

/**
 * No callback of the deleted object runs or will run any more. dispatch_thrd is 1 on a dispatch thread, 0 inside the
 * delete call.
 */
typedef void (*lbm_event_queue_cancel_cb_proc)(int dispatch_thrd, void *clientd);

/**
 * Who is told when the last callback of a deleted object is over. The queue needs
 * queue_cancellation_callbacks_enabled.
 */
struct lbm_event_queue_cancel_cb_info_t_stct {
    lbm_event_queue_t *event_queue;
    lbm_event_queue_cancel_cb_proc cbproc;
    void *clientd; /**< handed to the callback */
};

/** One element of an application header chain. */
struct lbm_apphdr_chain_elem_t_stct {
    lbm_uchar_t type;
    lbm_ushort_t subtype;
    size_t len;
    void *data;
};

/** Position in a properties object; name and data belong to the object. */
struct lbm_msg_properties_iter_t_stct {
    const char *name;
    char *data;
    size_t size;
    int type;
};

/** Where and how to reach the former configuration manager. */
struct lbm_umm_info_t_stct {
    char username[100];
    char password[100];
    char appname[100];
    char servers[16][32];
    lbm_uint32_t flags;
    char *cert_file;
    char *cert_file_password;
};

/** The last session left an XSP, which may be deleted here. Context thread. */
typedef int (*lbm_xsp_zero_transports_cb_proc)(lbm_xsp_t *xsp, void *clientd);

struct lbm_xsp_zero_transports_func_t_stct {
    lbm_xsp_zero_transports_cb_proc zero_transports_func;
    void *clientd; /**< handed to the callback */
};

/** The session an XSP is chosen for. */
struct lbm_new_transport_info_t_stct {
    int flags;
    lbm_transport_source_info_t src_info;
    char source[128]; /**< source string */
};

/** XSP that shall receive a session about to be joined, NULL for the context itself. Context thread. */
typedef lbm_xsp_t *(*lbm_transport_mapping_cb_proc)(lbm_context_t *ctx, lbm_new_transport_info_t *info, void *clientd);

struct lbm_transport_mapping_func_t_stct {
    lbm_transport_mapping_cb_proc mapping_func;
    void *clientd; /**< handed to the callback */
};

/** A timer has expired. Returns 0. Context thread or dispatch thread. */
typedef int (*lbm_timer_cb_proc)(lbm_context_t *ctx, const void *clientd);

/** Message or event for a receiver. Returns 0; -1 is logged. Runs on the context thread or on a dispatch thread. */
typedef int (*lbm_rcv_cb_proc)(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd);

/** A watched descriptor is ready: ev has LBM_FD_EVENT_* bits. Returns 0. Context thread or dispatch thread. */
typedef int (*lbm_fd_cb_proc)(lbm_context_t *ctx, lbm_handle_t handle, lbm_ulong_t ev, void *clientd);

/**
 * Event of a source; ed is the structure or text of the event. Returns 0. Runs on the context thread or a dispatch
 * thread; events about the message being sent run inside the send.
 */
typedef int (*lbm_src_cb_proc)(lbm_src_t *src, int event, void *ed, void *clientd);

/** Event of a smart source. Returns 0. Context thread, or inside the send. */
typedef int (*lbm_ssrc_cb_proc)(lbm_ssrc_t *ssrc, int event, void *ed, void *clientd);

/** A response to a request. Returns 0. Context thread or dispatch thread. */
typedef int (*lbm_request_cb_proc)(lbm_request_t *req, lbm_msg_t *msg, void *clientd);

/** A queue is long or slow (dispatch thread), or an event was queued (thread that queued it). Returns 0. */
typedef int (*lbm_event_queue_monitor_proc)(lbm_event_queue_t *evq, int event, size_t evq_size,
                                            lbm_ulong_t event_delay_usec, void *clientd);

/** A line to be logged, without newline. May run on any thread and must not call the library. Returns 0. */
typedef int (*lbm_log_cb_proc)(int level, const char *message, void *clientd);

/** Never called: daemon mode is gone. */
typedef int (*lbm_daemon_event_cb_proc)(lbm_context_t *ctx, int event, const char *info, void *clientd);

/** May replace the number of messages in flight; negative fails the call. Calling thread. */
typedef int (*lbm_flight_size_set_inflight_cb_proc)(int inflight, void *clientd);

/** May edit messages and bytes in flight. Calling thread. */
typedef void (*lbm_flight_size_set_inflight_ex_cb_proc)(lbm_flight_size_inflight_t *inflight, void *clientd);

/** Never called: authentication is gone. */
typedef int (*lbm_cred_callback_fn)(const char *name, size_t name_len, const char *passwd, size_t passwd_len,
                                    void *clientd);

/* Version and helpers. */

/** Text that names interface and library version. Never NULL; static. Context thread: yes. */
LBMExpDLL const char *lbm_version(void);

/** Nothing on Linux. Context thread: yes. */
LBMExpDLL void lbm_sock_init(void);

/** A random number of 64 bits. Context thread: yes. */
LBMExpDLL lbm_uint64_t lbm_create_random_id(void);

/**
 * Message id text "ID:<source>:<number>:<topic>", numbers in hexadecimal. The caller frees it with free(). Context
 * thread: yes.
 */
LBMExpDLL char *lbm_get_jms_msg_id(lbm_uint64_t source_id, lbm_uint64_t seqno_id, char *topic);

/* Licences. None is needed; files and texts are accepted and ignored. */

/** Accepts any file name. Context thread: yes. */
LBMExpDLL int lbm_license_file(const char *licfile);

/** Accepts any text. Context thread: yes. */
LBMExpDLL int lbm_license_str(const char *licstr);

/** Always 0: valid. Context thread: yes. */
LBMExpDLL int lbm_license_ummnm_valid(void);

/** Always 0: valid. Context thread: yes. */
LBMExpDLL int lbm_license_vds_valid(void);

/* Errors of the calling thread. */

/** Text of the last failure on this thread, "" before the first. Overwritten by the next one. Context thread: yes. */
LBMExpDLL const char *lbm_errmsg(void);

/**
 * LBM_E* number of the last failure on this thread, 0 before the first. Success does not clear it. Context thread:
 * yes.
 */
LBMExpDLL int lbm_errnum(void);

/** Nothing on Linux. Context thread: yes. */
LBMExpDLL int lbm_win32_static_thread_attach(void);

/** Nothing on Linux. Context thread: yes. */
LBMExpDLL int lbm_win32_static_thread_detach(void);

/** Sets number and text of the calling thread. Context thread: yes. */
LBMExpDLL void lbm_seterr(int eno, const char *str);

/** As lbm_seterr() with a printf format. Context thread: yes. */
LBMExpDLL void lbm_seterrf(int eno, const char *format, ...);

/** Text of errno. Context thread: yes. */
LBMExpDLL const char *lbm_strerror(void);

/** Text of an errno value. Context thread: yes. */
LBMExpDLL const char *lbm_strerror_errnum(int errnum);

/** Errors of this thread are expected: log them as information only. Context thread: yes. */
LBMExpDLL void lbm_set_benign_error_flag(void);

/** Ends lbm_set_benign_error_flag(). Context thread: yes. */
LBMExpDLL void lbm_clr_benign_error_flag(void);

/** 1 while the flag of this thread is set. Context thread: yes. */
LBMExpDLL int lbm_get_benign_error_flag(void);

/* Log lines of the library. */

/**
 * Sets the callback that gets every log line of the process; NULL brings back the default, standard error. Context
 * thread: yes.
 */
LBMExpDLL int lbm_log(lbm_log_cb_proc proc, void *clientd);

/** Writes a line to the log. Context thread: yes. */
LBMExpDLL void lbm_logf(int level, const char *format, ...);

/* Configuration of the whole process: defaults of every option. */

/**
 * Reads a plain configuration file (or an XML one, by its name ending in .xml) into the defaults of this process.
 * Lines that are wrong are logged and skipped; the result is then -1 and the text names file and line of the last one.
 * Context thread: yes.
 */
LBMExpDLL int lbm_config(const char *fname);

/**
 * Loads an XML configuration for an application name, NULL for none. Once per process: a second time is LBM_EOP.
 * Context thread: yes.
 */
LBMExpDLL int lbm_config_xml_file(const char *url, const char *application_name);

/** As lbm_config_xml_file(), from memory. Context thread: yes. */
LBMExpDLL int lbm_config_xml_string(const char *xml_data, const char *application_name);

/** Client of the former configuration manager. Context thread: yes. */
LBMExpDLL int lbm_set_umm_info(lbm_umm_info_t *info);

/*
 * Contexts: one each stands for a complete messaging engine. In embedded mode it owns a thread; in sequential mode the
 * application lends it one through lbm_context_process_events().
 */

/**
 * Makes a context from attr, NULL for the defaults. proc and clientd are ignored. In embedded mode its thread runs
 * when the call returns. Context thread: yes.
 */
LBMExpDLL int lbm_context_create(lbm_context_t **ctxp, const lbm_context_attr_t *attr, lbm_daemon_event_cb_proc proc,
                                 void *clientd);

/** Makes a context that has timers and descriptors only; messaging calls on it are LBM_EOP. Context thread: yes. */
LBMExpDLL int lbm_context_reactor_only_create(lbm_context_t **ctxp, const lbm_context_attr_t *attr);

/**
 * Ends the context and its thread. Sources, receivers and wildcard receivers must be gone: LBM_EOP otherwise, and the
 * context stays. Context thread: no.
 */
LBMExpDLL int lbm_context_delete(lbm_context_t *ctx);

/** As lbm_context_delete(), with a cancel callback. Context thread: no. */
LBMExpDLL int lbm_context_delete_ex(lbm_context_t *ctx, lbm_event_queue_cancel_cb_info_t *cbinfo);

/**
 * Asks other contexts to resolve now: LBM_TOPIC_RES_REQUEST_* bits, every interval_msec milliseconds for duration_sec
 * seconds, once when that is 0. Context thread: yes.
 */
LBMExpDLL int lbm_context_topic_resolution_request(lbm_context_t *ctx, lbm_ushort_t flags, lbm_ulong_t interval_msec,
                                                   lbm_ulong_t duration_sec);

/** Does nothing but warn; use the option context_name. Context thread: yes. */
LBMExpDLL int lbm_context_set_name(lbm_context_t *ctx, const char *name);

/** Does nothing but warn; use the option context_name. Context thread: yes. */
LBMExpDLL int lbm_context_get_name(lbm_context_t *ctx, char *name, size_t *size);

/**
 * Sequential mode: handles what is due, waiting up to msec milliseconds; 0 does not wait. LBM_EINVAL on an embedded
 * context. Context thread: no.
 */
LBMExpDLL int lbm_context_process_events(lbm_context_t *ctx, lbm_ulong_t msec);

/** As lbm_context_process_events(), with flags or the caller's clock. Context thread: no. */
LBMExpDLL int lbm_context_process_events_ex(lbm_context_t *ctx, lbm_ulong_t msec, lbm_process_events_info_t *info);

/** Makes the running, else the next, lbm_context_process_events() return. Context thread: yes. */
LBMExpDLL int lbm_context_unblock(lbm_context_t *ctx);

/**
 * Receives from LBT-IPC sessions in sequential IPC mode, up to msec milliseconds or loop_count passes. Context thread:
 * no.
 */
LBMExpDLL int lbm_context_process_lbtipc_messages(lbm_context_t *ctx, lbm_ulong_t msec, lbm_ulong_t loop_count);

/** Makes lbm_context_process_lbtipc_messages() return. Context thread: yes. */
LBMExpDLL int lbm_context_lbtipc_unblock(lbm_context_t *ctx);

/** Stops or resumes the NAKs of this context on LBT-RM: exactly one LBM_NAK_CUTOFF_FLAG_*. Context thread: yes. */
LBMExpDLL int lbm_context_set_nak_cutoff(lbm_context_t *ctx, int flags);

/*
 * Context options. An attribute object collects options before the context exists; lbm_context_setopt() and its like
 * work on the living one.
 */

/**
 * All options of the living object as text. *size is the number of entries in the array and becomes the number
 * written. Context thread: yes.
 */
LBMExpDLL int lbm_context_dump(lbm_context_t *ctx, int *size, lbm_config_option_t *opts);

/**
 * All options as text. *size is the number of entries in the array and becomes the number written. Context thread:
 * yes.
 */
LBMExpDLL int lbm_context_attr_dump(lbm_context_attr_t *cattr, int *size, lbm_config_option_t *opts);

/** Number of context options: the room lbm_context_attr_dump() needs. Context thread: yes. */
LBMExpDLL int lbm_context_attr_option_size(void);

/** Makes an attribute object with the current defaults of context options. Context thread: yes. */
LBMExpDLL int lbm_context_attr_create(lbm_context_attr_t **attr);

/** Makes an attribute object with the factory defaults, whatever was configured. Context thread: yes. */
LBMExpDLL int lbm_context_attr_create_default(lbm_context_attr_t **attr);

/**
 * Makes an attribute object with the values of the XML configuration for the names given; fails when it forbids them.
 * Context thread: yes.
 */
LBMExpDLL int lbm_context_attr_create_from_xml(lbm_context_attr_t **attr, const char *context_name);

/**
 * Writes the values of the XML configuration for the names given into the object; fails when it forbids them. Context
 * thread: yes.
 */
LBMExpDLL int lbm_context_attr_set_from_xml(lbm_context_attr_t *attr, const char *context_name);

/** Frees it. Objects made from it are not affected. Context thread: yes. */
LBMExpDLL int lbm_context_attr_delete(lbm_context_attr_t *attr);

/** Makes a copy. Context thread: yes. */
LBMExpDLL int lbm_context_attr_dup(lbm_context_attr_t **attr, const lbm_context_attr_t *original);

/** Sets an option from its binary form of optlen bytes. Context thread: yes. */
LBMExpDLL int lbm_context_attr_setopt(lbm_context_attr_t *attr, const char *optname, const void *optval, size_t optlen);

/** Sets an option from text, as in a configuration file. Context thread: yes. */
LBMExpDLL int lbm_context_attr_str_setopt(lbm_context_attr_t *attr, const char *optname, const char *optval);

/** Reads an option in binary form. *optlen is the room in bytes and becomes the size. Context thread: yes. */
LBMExpDLL int lbm_context_attr_getopt(lbm_context_attr_t *attr, const char *optname, void *optval, size_t *optlen);

/**
 * Reads an option as text. *optlen is the room in bytes, at least 80, and becomes the length. Context thread: yes.
 */
LBMExpDLL int lbm_context_attr_str_getopt(lbm_context_attr_t *attr, const char *optname, char *optval, size_t *optlen);

/** Changes an option of the living object; only those that may change during operation. Context thread: yes. */
LBMExpDLL int lbm_context_setopt(lbm_context_t *ctx, const char *optname, const void *optval, size_t optlen);

/** As above, from text. Context thread: yes. */
LBMExpDLL int lbm_context_str_setopt(lbm_context_t *ctx, const char *optname, const char *optval);

/**
 * Reads an option of the living object in binary form, as it is in force: ports, addresses and ids that were chosen,
 * sizes that were rounded. Context thread: yes.
 */
LBMExpDLL int lbm_context_getopt(lbm_context_t *ctx, const char *optname, void *optval, size_t *optlen);

/** As above, as text. Context thread: yes. */
LBMExpDLL int lbm_context_str_getopt(lbm_context_t *ctx, const char *optname, char *optval, size_t *optlen);

/* Timers of a context. */

/**
 * Calls proc once, delay milliseconds from now, on the context thread or through evq. Returns an id >= 0. Context
 * thread: yes.
 */
LBMExpDLL int lbm_schedule_timer(lbm_context_t *ctx, lbm_timer_cb_proc proc, void *clientd, lbm_event_queue_t *evq,
                                 lbm_ulong_t delay);

/** Calls proc every delay milliseconds until cancelled. Returns an id >= 0. Context thread: yes. */
LBMExpDLL int lbm_schedule_timer_recurring(lbm_context_t *ctx, lbm_timer_cb_proc proc, void *clientd,
                                           lbm_event_queue_t *evq, lbm_ulong_t delay);

/**
 * Cancels a timer and gives back its clientd if wanted. An id that has fired or is unknown is success. With an event
 * queue the callback may still be running. Context thread: yes.
 */
LBMExpDLL int lbm_cancel_timer(lbm_context_t *ctx, int id, void **clientdp);

/** As lbm_cancel_timer(), with a cancel callback. Context thread: yes. */
LBMExpDLL int lbm_cancel_timer_ex(lbm_context_t *ctx, int id, void **clientdp,
                                  lbm_event_queue_cancel_cb_info_t *cbinfo);

/* File descriptors watched by a context. */

/**
 * Calls proc while the descriptor has one of the LBM_FD_EVENT_* bits ev. One registration per descriptor and bit.
 * Context thread: no.
 */
LBMExpDLL int lbm_register_fd(lbm_context_t *ctx, lbm_handle_t handle, lbm_fd_cb_proc proc, void *clientd,
                              lbm_event_queue_t *evq, lbm_ulong_t ev);

/** Ends the registration for the bits ev. The callback may still be running on another thread. Context thread: yes. */
LBMExpDLL int lbm_cancel_fd(lbm_context_t *ctx, lbm_handle_t handle, lbm_ulong_t ev);

/** As lbm_cancel_fd(), with a cancel callback. Context thread: yes. */
LBMExpDLL int lbm_cancel_fd_ex(lbm_context_t *ctx, lbm_handle_t handle, lbm_ulong_t ev,
                               lbm_event_queue_cancel_cb_info_t *cbinfo);

/* Sources: publishers of one topic each. */

/**
 * Topic for one source, from attr or the defaults. Belongs to the context; a source takes it over, and every source
 * needs one of its own. At most 246 characters. Context thread: no.
 */
LBMExpDLL int lbm_src_topic_alloc(lbm_topic_t **topicp, lbm_context_t *ctx, const char *symbol,
                                  const lbm_src_topic_attr_t *attr);

/** Channel of a source, used in sends with LBM_SRC_SEND_EX_FLAG_CHANNEL. Context thread: yes. */
LBMExpDLL int lbm_src_channel_create(lbm_src_channel_info_t **chnp, lbm_src_t *src, lbm_uint32_t channel_num);

/** Frees a channel object. Context thread: yes. */
LBMExpDLL int lbm_src_channel_delete(lbm_src_channel_info_t *chn);

/**
 * Makes the source of a topic and starts to advertise it. proc gets its events, NULL for none; through evq if given.
 * Context thread: no.
 */
LBMExpDLL int lbm_src_create(lbm_src_t **srcp, lbm_context_t *ctx, lbm_topic_t *topic, lbm_src_cb_proc proc,
                             void *clientd, lbm_event_queue_t *evq);

/**
 * Ends the source; a thread blocked in its send gets LBM_EINVAL. No callback runs on the context thread after the
 * return. Context thread: no.
 */
LBMExpDLL int lbm_src_delete(lbm_src_t *src);

/** As lbm_src_delete(), with a cancel callback. Context thread: no. */
LBMExpDLL int lbm_src_delete_ex(lbm_src_t *src, lbm_event_queue_cancel_cb_info_t *cbinfo);

/** Context of the source; borrowed. Context thread: yes. */
LBMExpDLL lbm_context_t *lbm_context_from_src(lbm_src_t *src);

/** Topic of the source; borrowed. Context thread: yes. */
LBMExpDLL lbm_topic_t *lbm_topic_from_src(lbm_src_t *src);

/**
 * Sends one message of len bytes, 0 included. Waits for room unless LBM_SRC_NONBLOCK; on the context thread a send
 * that would wait is LBM_EWOULDBLOCK. Context thread: yes.
 */
LBMExpDLL int lbm_src_send(lbm_src_t *src, const char *msg, size_t len, int flags);

/** As lbm_src_send(), with extras; NULL for none. Context thread: yes. */
LBMExpDLL int lbm_src_send_ex(lbm_src_t *src, const char *msg, size_t len, int flags, lbm_src_send_ex_info_t *info);

/** Sends now what is batched on the transport session of the source. LBM_EOP on the context thread; there, send with
 * LBM_MSG_FLUSH. Context thread: no. */
LBMExpDLL int lbm_src_flush(lbm_src_t *src);

/** Sends now what is batched on all transport sessions of the context. Context thread: yes. */
LBMExpDLL int lbm_flush_all(lbm_context_t *ctx);

/** Sends num segments, each as a message of its own, or all as one with LBM_MSG_IOV_GATHER. Context thread: yes. */
LBMExpDLL int lbm_src_sendv(lbm_src_t *src, const lbm_iovec_t *iov, int num, int flags);

/** Sends num segments as one message, with extras; NULL for none. Context thread: yes. */
LBMExpDLL int lbm_src_sendv_ex(lbm_src_t *src, const lbm_iovec_t *iov, int num, int flags,
                               lbm_src_send_ex_info_t *info);

/** LBT-SMX: a buffer of len bytes in shared memory to write a message into. Context thread: yes. */
LBMExpDLL int lbm_src_buff_acquire(lbm_src_t *const src, void **const bufp, const size_t len, const int flags);

/** LBT-SMX: sends all buffers acquired on the session. Context thread: yes. */
LBMExpDLL int lbm_src_buffs_complete(lbm_src_t *const src);

/** LBT-SMX: completes, then acquires. Context thread: yes. */
LBMExpDLL int lbm_src_buffs_complete_and_acquire(lbm_src_t *const src, void **const bufp, const size_t len,
                                                 const int flags);

/** LBT-SMX: gives back the buffers of this source unsent. Context thread: yes. */
LBMExpDLL int lbm_src_buffs_cancel(lbm_src_t *const src);

/**
 * LBT-RM, without late join: a buffer of at most one datagram, for lbm_src_send() with its handle as msg and
 * LBM_MSG_BUFF_ALLOC. The send frees it unless it fails with LBM_EWOULDBLOCK or LBM_EINVAL; the source frees the rest.
 * Context thread: yes.
 */
LBMExpDLL int lbm_src_alloc_msg_buff(lbm_src_t *const src, void **const usr_bufp, const size_t len,
                                     void **const lbm_hdl, const int flags);

/* Source options, for plain, hot-failover and smart sources. */

/**
 * All options of the living object as text. *size is the number of entries in the array and becomes the number
 * written. Context thread: yes.
 */
LBMExpDLL int lbm_src_topic_dump(lbm_src_t *src, int *size, lbm_config_option_t *opts);

/**
 * All options of the living object as text. *size is the number of entries in the array and becomes the number
 * written. Context thread: yes.
 */
LBMExpDLL int lbm_ssrc_topic_dump(lbm_ssrc_t *ssrc, int *size, lbm_config_option_t *opts);

/**
 * All options as text. *size is the number of entries in the array and becomes the number written. Context thread:
 * yes.
 */
LBMExpDLL int lbm_src_topic_attr_dump(lbm_src_topic_attr_t *sattr, int *size, lbm_config_option_t *opts);

/** Number of source options: the room lbm_src_topic_attr_dump() needs. Context thread: yes. */
LBMExpDLL int lbm_src_topic_attr_option_size(void);

/** Makes an attribute object with the current defaults of source options. Context thread: yes. */
LBMExpDLL int lbm_src_topic_attr_create(lbm_src_topic_attr_t **attr);

/** Makes an attribute object with the factory defaults, whatever was configured. Context thread: yes. */
LBMExpDLL int lbm_src_topic_attr_create_default(lbm_src_topic_attr_t **attr);

/**
 * Makes an attribute object with the values of the XML configuration for the names given; fails when it forbids them.
 * Context thread: yes.
 */
LBMExpDLL int lbm_src_topic_attr_create_from_xml(lbm_src_topic_attr_t **attr, const char *context_name,
                                                 const char *topicname);

/**
 * Writes the values of the XML configuration for the names given into the object; fails when it forbids them. Context
 * thread: yes.
 */
LBMExpDLL int lbm_src_topic_attr_set_from_xml(lbm_src_topic_attr_t *attr, const char *context_name,
                                              const char *topicname);

/** Frees it. Objects made from it are not affected. Context thread: yes. */
LBMExpDLL int lbm_src_topic_attr_delete(lbm_src_topic_attr_t *attr);

/** Makes a copy. Context thread: yes. */
LBMExpDLL int lbm_src_topic_attr_dup(lbm_src_topic_attr_t **attr, const lbm_src_topic_attr_t *original);

/** Sets an option from its binary form of optlen bytes. Context thread: yes. */
LBMExpDLL int lbm_src_topic_attr_setopt(lbm_src_topic_attr_t *attr, const char *optname, const void *optval,
                                        size_t optlen);

/** Sets an option from text, as in a configuration file. Context thread: yes. */
LBMExpDLL int lbm_src_topic_attr_str_setopt(lbm_src_topic_attr_t *attr, const char *optname, const char *optval);

/** Reads an option in binary form. *optlen is the room in bytes and becomes the size. Context thread: yes. */
LBMExpDLL int lbm_src_topic_attr_getopt(lbm_src_topic_attr_t *attr, const char *optname, void *optval, size_t *optlen);

/**
 * Reads an option as text. *optlen is the room in bytes, at least 80, and becomes the length. Context thread: yes.
 */
LBMExpDLL int lbm_src_topic_attr_str_getopt(lbm_src_topic_attr_t *attr, const char *optname, char *optval,
                                            size_t *optlen);

/** Changes an option of the living object; only those that may change during operation. Context thread: yes. */
LBMExpDLL int lbm_src_setopt(lbm_src_t *src, const char *optname, const void *optval, size_t optlen);

/** As above, from text. Context thread: yes. */
LBMExpDLL int lbm_src_str_setopt(lbm_src_t *src, const char *optname, const char *optval);

/**
 * Reads an option of the living object in binary form, as it is in force: ports, addresses and ids that were chosen,
 * sizes that were rounded. Context thread: yes.
 */
LBMExpDLL int lbm_src_getopt(lbm_src_t *src, const char *optname, void *optval, size_t *optlen);

/** As above, as text. Context thread: yes. */
LBMExpDLL int lbm_src_str_getopt(lbm_src_t *src, const char *optname, char *optval, size_t *optlen);

/* Receivers: subscribers of one topic each. */

/**
 * Topic for receivers. The context keeps one object per name, whose options are those of its first lookup; never
 * deleted by the application. Queries for sources begin here. Valid until the last receiver made of it is deleted; for
 * another one it is looked up again (the 1024 topics left last are kept all the same). Context thread: no.
 */
LBMExpDLL int lbm_rcv_topic_lookup(lbm_topic_t **topicp, lbm_context_t *ctx, const char *symbol,
                                   const lbm_rcv_topic_attr_t *attr);

/**
 * Makes a receiver and starts to look for sources. proc gets messages and events, through evq if given. Receivers of
 * the same topic and context share their sources. Context thread: no.
 */
LBMExpDLL int lbm_rcv_create(lbm_rcv_t **rcvp, lbm_context_t *ctx, lbm_topic_t *topic, lbm_rcv_cb_proc proc,
                             void *clientd, lbm_event_queue_t *evq);

/**
 * Takes messages of a channel, with its own callback or, when proc is NULL, that of the receiver. Context thread: no.
 */
LBMExpDLL int lbm_rcv_subscribe_channel(lbm_rcv_t *rcv, lbm_uint32_t channel, lbm_rcv_cb_proc proc, void *clientd);

/** Takes messages of the channel no more. Context thread: no. */
LBMExpDLL int lbm_rcv_unsubscribe_channel(lbm_rcv_t *rcv, lbm_uint32_t channel);

/** As lbm_rcv_unsubscribe_channel(), with a cancel callback. Context thread: no. */
LBMExpDLL int lbm_rcv_unsubscribe_channel_ex(lbm_rcv_t *rcv, lbm_uint32_t channel,
                                             lbm_event_queue_cancel_cb_info_t *cbinfo);

/**
 * Ends the receiver. No callback runs on the context thread after the return; queued messages are dropped; no EOS is
 * given. Context thread: no.
 */
LBMExpDLL int lbm_rcv_delete(lbm_rcv_t *rcv);

/** As lbm_rcv_delete(), with a cancel callback. Context thread: no. */
LBMExpDLL int lbm_rcv_delete_ex(lbm_rcv_t *rcv, lbm_event_queue_cancel_cb_info_t *cbinfo);

/** Context of the receiver; borrowed. Context thread: yes. */
LBMExpDLL lbm_context_t *lbm_context_from_rcv(lbm_rcv_t *rcv);

/** Sets lbm_msg_t.source_clientd of later messages from a source of this receiver. Context thread: yes. */
LBMExpDLL int lbm_rcv_msg_source_clientd(lbm_rcv_t *rcv, const char *source, void *source_clientd);

/* Receiver options. */

/**
 * All options of the living object as text. *size is the number of entries in the array and becomes the number
 * written. Context thread: yes.
 */
LBMExpDLL int lbm_rcv_topic_dump(lbm_rcv_t *rcv, int *size, lbm_config_option_t *opts);

/**
 * All options as text. *size is the number of entries in the array and becomes the number written. Context thread:
 * yes.
 */
LBMExpDLL int lbm_rcv_topic_attr_dump(lbm_rcv_topic_attr_t *rattr, int *size, lbm_config_option_t *opts);

/** Number of receiver options: the room lbm_rcv_topic_attr_dump() needs. Context thread: yes. */
LBMExpDLL int lbm_rcv_topic_attr_option_size(void);

/** Makes an attribute object with the current defaults of receiver options. Context thread: yes. */
LBMExpDLL int lbm_rcv_topic_attr_create(lbm_rcv_topic_attr_t **attr);

/** Makes an attribute object with the factory defaults, whatever was configured. Context thread: yes. */
LBMExpDLL int lbm_rcv_topic_attr_create_default(lbm_rcv_topic_attr_t **attr);

/**
 * Makes an attribute object with the values of the XML configuration for the names given; fails when it forbids them.
 * Context thread: yes.
 */
LBMExpDLL int lbm_rcv_topic_attr_create_from_xml(lbm_rcv_topic_attr_t **attr, const char *context_name,
                                                 const char *topicname);

/**
 * Writes the values of the XML configuration for the names given into the object; fails when it forbids them. Context
 * thread: yes.
 */
LBMExpDLL int lbm_rcv_topic_attr_set_from_xml(lbm_rcv_topic_attr_t *attr, const char *context_name,
                                              const char *topicname);

/** Frees it. Objects made from it are not affected. Context thread: yes. */
LBMExpDLL int lbm_rcv_topic_attr_delete(lbm_rcv_topic_attr_t *attr);

/** Makes a copy. Context thread: yes. */
LBMExpDLL int lbm_rcv_topic_attr_dup(lbm_rcv_topic_attr_t **attr, const lbm_rcv_topic_attr_t *original);

/** Sets an option from its binary form of optlen bytes. Context thread: yes. */
LBMExpDLL int lbm_rcv_topic_attr_setopt(lbm_rcv_topic_attr_t *attr, const char *optname, const void *optval,
                                        size_t optlen);

/** Sets an option from text, as in a configuration file. Context thread: yes. */
LBMExpDLL int lbm_rcv_topic_attr_str_setopt(lbm_rcv_topic_attr_t *attr, const char *optname, const char *optval);

/** Reads an option in binary form. *optlen is the room in bytes and becomes the size. Context thread: yes. */
LBMExpDLL int lbm_rcv_topic_attr_getopt(lbm_rcv_topic_attr_t *attr, const char *optname, void *optval, size_t *optlen);

/**
 * Reads an option as text. *optlen is the room in bytes, at least 80, and becomes the length. Context thread: yes.
 */
LBMExpDLL int lbm_rcv_topic_attr_str_getopt(lbm_rcv_topic_attr_t *attr, const char *optname, char *optval,
                                            size_t *optlen);

/** Changes an option of the living object; only those that may change during operation. Context thread: yes. */
LBMExpDLL int lbm_rcv_setopt(lbm_rcv_t *rcv, const char *optname, const void *optval, size_t optlen);

/** As above, from text. Context thread: yes. */
LBMExpDLL int lbm_rcv_str_setopt(lbm_rcv_t *rcv, const char *optname, const char *optval);

/**
 * Reads an option of the living object in binary form, as it is in force: ports, addresses and ids that were chosen,
 * sizes that were rounded. Context thread: yes.
 */
LBMExpDLL int lbm_rcv_getopt(lbm_rcv_t *rcv, const char *optname, void *optval, size_t *optlen);

/** As above, as text. Context thread: yes. */
LBMExpDLL int lbm_rcv_str_getopt(lbm_rcv_t *rcv, const char *optname, char *optval, size_t *optlen);

/* Wildcard receivers: subscribers of every topic that matches a pattern. */

/** As lbm_rcv_subscribe_channel(). Context thread: no. */
LBMExpDLL int lbm_wildcard_rcv_subscribe_channel(lbm_wildcard_rcv_t *wrcv, lbm_uint32_t channel, lbm_rcv_cb_proc proc,
                                                 void *clientd);

/** As lbm_rcv_unsubscribe_channel(). Context thread: no. */
LBMExpDLL int lbm_wildcard_rcv_unsubscribe_channel(lbm_wildcard_rcv_t *wrcv, lbm_uint32_t channel);

/** As lbm_rcv_unsubscribe_channel_ex(). Context thread: no. */
LBMExpDLL int lbm_wildcard_rcv_unsubscribe_channel_ex(lbm_wildcard_rcv_t *wrcv, lbm_uint32_t channel,
                                                      lbm_event_queue_cancel_cb_info_t *cbinfo);

/**
 * Makes a receiver for every topic that matches pattern. tattr holds receiver options for the matched topics, wattr
 * those of the wildcard receiver; NULL for the defaults. The receiver handle of its messages is not for deleting.
 * Context thread: no.
 */
LBMExpDLL int lbm_wildcard_rcv_create(lbm_wildcard_rcv_t **wrcvp, lbm_context_t *ctx, const char *pattern,
                                      const lbm_rcv_topic_attr_t *tattr, const lbm_wildcard_rcv_attr_t *wattr,
                                      lbm_rcv_cb_proc proc, void *clientd, lbm_event_queue_t *evq);

/** As lbm_rcv_delete(), for all matched topics. Context thread: no. */
LBMExpDLL int lbm_wildcard_rcv_delete(lbm_wildcard_rcv_t *wrcv);

/** As lbm_wildcard_rcv_delete(), with a cancel callback. Context thread: no. */
LBMExpDLL int lbm_wildcard_rcv_delete_ex(lbm_wildcard_rcv_t *wrcv, lbm_event_queue_cancel_cb_info_t *cbinfo);

/** Context of the wildcard receiver; borrowed. Context thread: yes. */
LBMExpDLL lbm_context_t *lbm_context_from_wildcard_rcv(lbm_wildcard_rcv_t *wcrcv);

/* Wildcard receiver options. */

/**
 * All options of the living object as text. *size is the number of entries in the array and becomes the number
 * written. Context thread: yes.
 */
LBMExpDLL int lbm_wildcard_rcv_dump(lbm_wildcard_rcv_t *wrcv, int *size, lbm_config_option_t *opts);

/**
 * All options as text. *size is the number of entries in the array and becomes the number written. Context thread:
 * yes.
 */
LBMExpDLL int lbm_wildcard_rcv_attr_dump(lbm_wildcard_rcv_attr_t *wattr, int *size, lbm_config_option_t *opts);

/** Number of wildcard receiver options: the room lbm_wildcard_rcv_attr_dump() needs. Context thread: yes. */
LBMExpDLL int lbm_wildcard_rcv_attr_option_size(void);

/** Makes an attribute object with the current defaults of wildcard receiver options. Context thread: yes. */
LBMExpDLL int lbm_wildcard_rcv_attr_create(lbm_wildcard_rcv_attr_t **attr);

/** Makes an attribute object with the factory defaults, whatever was configured. Context thread: yes. */
LBMExpDLL int lbm_wildcard_rcv_attr_create_default(lbm_wildcard_rcv_attr_t **attr);

/**
 * Makes an attribute object with the values of the XML configuration for the names given; fails when it forbids them.
 * Context thread: yes.
 */
LBMExpDLL int lbm_wildcard_rcv_attr_create_from_xml(lbm_wildcard_rcv_attr_t **attr, const char *context_name,
                                                    const char *pattern, int pattern_type);

/**
 * Writes the values of the XML configuration for the names given into the object; fails when it forbids them. Context
 * thread: yes.
 */
LBMExpDLL int lbm_wildcard_rcv_attr_set_from_xml(lbm_wildcard_rcv_attr_t *attr, const char *context_name,
                                                 const char *pattern, int pattern_type);

/** Frees it. Objects made from it are not affected. Context thread: yes. */
LBMExpDLL int lbm_wildcard_rcv_attr_delete(lbm_wildcard_rcv_attr_t *attr);

/** Makes a copy. Context thread: yes. */
LBMExpDLL int lbm_wildcard_rcv_attr_dup(lbm_wildcard_rcv_attr_t **attr, const lbm_wildcard_rcv_attr_t *original);

/** Sets an option from its binary form of optlen bytes. Context thread: yes. */
LBMExpDLL int lbm_wildcard_rcv_attr_setopt(lbm_wildcard_rcv_attr_t *attr, const char *optname, const void *optval,
                                           size_t optlen);

/** Sets an option from text, as in a configuration file. Context thread: yes. */
LBMExpDLL int lbm_wildcard_rcv_attr_str_setopt(lbm_wildcard_rcv_attr_t *attr, const char *optname, const char *optval);

/** Reads an option in binary form. *optlen is the room in bytes and becomes the size. Context thread: yes. */
LBMExpDLL int lbm_wildcard_rcv_attr_getopt(lbm_wildcard_rcv_attr_t *attr, const char *optname, void *optval,
                                           size_t *optlen);

/**
 * Reads an option as text. *optlen is the room in bytes, at least 80, and becomes the length. Context thread: yes.
 */
LBMExpDLL int lbm_wildcard_rcv_attr_str_getopt(lbm_wildcard_rcv_attr_t *attr, const char *optname, char *optval,
                                               size_t *optlen);

/** Changes an option of the living object; only those that may change during operation. Context thread: yes. */
LBMExpDLL int lbm_wildcard_rcv_setopt(lbm_wildcard_rcv_t *wrcv, const char *optname, const void *optval, size_t optlen);

/** As above, from text. Context thread: yes. */
LBMExpDLL int lbm_wildcard_rcv_str_setopt(lbm_wildcard_rcv_t *wrcv, const char *optname, const char *optval);

/** Reads an option of the living object in binary form. Context thread: yes. */
LBMExpDLL int lbm_wildcard_rcv_getopt(lbm_wildcard_rcv_t *wrcv, const char *optname, void *optval, size_t *optlen);

/** As above, as text. Context thread: yes. */
LBMExpDLL int lbm_wildcard_rcv_str_getopt(lbm_wildcard_rcv_t *wrcv, const char *optname, char *optval, size_t *optlen);

/* Received messages. */

/**
 * Keeps a message beyond its callback; called inside it. lbm_msg_delete() ends that, once for each call. Context
 * thread: yes.
 */
LBMExpDLL int lbm_msg_retain(lbm_msg_t *msg);

/** 1 when the message is one fragment of a larger one (ordered_delivery 0), else 0. Context thread: yes. */
LBMExpDLL int lbm_msg_is_fragment(lbm_msg_t *msg);

/** Place of a fragment in its message; -1 when there was one fragment only. Context thread: yes. */
LBMExpDLL int lbm_msg_retrieve_fragment_info(lbm_msg_t *msg, lbm_msg_fragment_info_t *info);

/** Deprecated: always LBM_EINVAL. Context thread: yes. */
LBMExpDLL int lbm_msg_retrieve_gateway_info(lbm_msg_t *msg, lbm_msg_gateway_info_t *info);

/** Latency in nanoseconds of messages that carry it. Context thread: yes. */
LBMExpDLL int lbm_msg_retrieve_delivery_latency(lbm_msg_t *msg, lbm_int64_t *latency_nsecs);

/** Gives back a retained message. LBM_EINVAL for one that is not retained. Context thread: yes. */
LBMExpDLL int lbm_msg_delete(lbm_msg_t *msg);

/* Event queues: they move callbacks to threads that the application lends through lbm_event_dispatch(). */

/** Event queue of the source, NULL for none. Context thread: yes. */
LBMExpDLL lbm_event_queue_t *lbm_event_queue_from_src(lbm_src_t *src);

/** Event queue of the receiver, NULL for none. Context thread: yes. */
LBMExpDLL lbm_event_queue_t *lbm_event_queue_from_rcv(lbm_rcv_t *rcv);

/** Makes an event queue. proc gets its warnings, NULL for none. Context thread: yes. */
LBMExpDLL int lbm_event_queue_create(lbm_event_queue_t **evqp, lbm_event_queue_monitor_proc proc, void *clientd,
                                     const lbm_event_queue_attr_t *attr);

/**
 * Runs callbacks of the queue on this thread and returns their number. LBM_EVENT_QUEUE_POLL runs one at most and never
 * waits; LBM_EVENT_QUEUE_BLOCK runs until a lbm_event_dispatch_unblock() is taken. Any other tmo is milliseconds since
 * the call, looked at after each event only: an idle queue keeps waiting. Several threads may dispatch a queue. LBM_EOP
 * on a context thread. Context thread: no.
 */
LBMExpDLL int lbm_event_dispatch(lbm_event_queue_t *evq, lbm_ulong_t tmo);

/** Makes one lbm_event_dispatch() return, the running or else the next. Context thread: yes. */
LBMExpDLL int lbm_event_dispatch_unblock(lbm_event_queue_t *evq);

/** Events in the queue; needs the option queue_size_warning. Context thread: yes. */
LBMExpDLL int lbm_event_queue_size(lbm_event_queue_t *evq);

/** The queue takes no more events and drops those it has; dispatchers return. Context thread: yes. */
LBMExpDLL int lbm_event_queue_shutdown(lbm_event_queue_t *evq);

/** Frees the queue. All objects that use it are deleted and no thread dispatches it. Context thread: yes. */
LBMExpDLL int lbm_event_queue_delete(lbm_event_queue_t *evq);

/** Event queue of the wildcard receiver, NULL for none. Context thread: yes. */
LBMExpDLL lbm_event_queue_t *lbm_event_queue_from_wildcard_rcv(lbm_wildcard_rcv_t *wcrcv);

/* Event queue options. */

/**
 * All options of the living object as text. *size is the number of entries in the array and becomes the number
 * written. Context thread: yes.
 */
LBMExpDLL int lbm_event_queue_dump(lbm_event_queue_t *evq, int *size, lbm_config_option_t *opts);

/**
 * All options as text. *size is the number of entries in the array and becomes the number written. Context thread:
 * yes.
 */
LBMExpDLL int lbm_event_queue_attr_dump(lbm_event_queue_attr_t *eattr, int *size, lbm_config_option_t *opts);

/** Number of event queue options: the room lbm_event_queue_attr_dump() needs. Context thread: yes. */
LBMExpDLL int lbm_event_queue_attr_option_size(void);

/** Makes an attribute object with the current defaults of event queue options. Context thread: yes. */
LBMExpDLL int lbm_event_queue_attr_create(lbm_event_queue_attr_t **attr);

/** Makes an attribute object with the factory defaults, whatever was configured. Context thread: yes. */
LBMExpDLL int lbm_event_queue_attr_create_default(lbm_event_queue_attr_t **attr);

/**
 * Makes an attribute object with the values of the XML configuration for the names given; fails when it forbids them.
 * Context thread: yes.
 */
LBMExpDLL int lbm_event_queue_attr_create_from_xml(lbm_event_queue_attr_t **attr, const char *event_queue_name);

/**
 * Writes the values of the XML configuration for the names given into the object; fails when it forbids them. Context
 * thread: yes.
 */
LBMExpDLL int lbm_event_queue_attr_set_from_xml(lbm_event_queue_attr_t *attr, const char *event_queue_name);

/** Frees it. Objects made from it are not affected. Context thread: yes. */
LBMExpDLL int lbm_event_queue_attr_delete(lbm_event_queue_attr_t *attr);

/** Makes a copy. Context thread: yes. */
LBMExpDLL int lbm_event_queue_attr_dup(lbm_event_queue_attr_t **attr, const lbm_event_queue_attr_t *original);

/** Sets an option from its binary form of optlen bytes. Context thread: yes. */
LBMExpDLL int lbm_event_queue_attr_setopt(lbm_event_queue_attr_t *attr, const char *optname, const void *optval,
                                          size_t optlen);

/** Sets an option from text, as in a configuration file. Context thread: yes. */
LBMExpDLL int lbm_event_queue_attr_str_setopt(lbm_event_queue_attr_t *attr, const char *optname, const char *optval);

/** Reads an option in binary form. *optlen is the room in bytes and becomes the size. Context thread: yes. */
LBMExpDLL int lbm_event_queue_attr_getopt(lbm_event_queue_attr_t *attr, const char *optname, void *optval,
                                          size_t *optlen);

/**
 * Reads an option as text. *optlen is the room in bytes, at least 80, and becomes the length. Context thread: yes.
 */
LBMExpDLL int lbm_event_queue_attr_str_getopt(lbm_event_queue_attr_t *attr, const char *optname, char *optval,
                                              size_t *optlen);

/** Changes an option of the living object; only those that may change during operation. Context thread: yes. */
LBMExpDLL int lbm_event_queue_setopt(lbm_event_queue_t *evq, const char *optname, const void *optval, size_t optlen);

/** As above, from text. Context thread: yes. */
LBMExpDLL int lbm_event_queue_str_setopt(lbm_event_queue_t *evq, const char *optname, const char *optval);

/** Reads an option of the living object in binary form. Context thread: yes. */
LBMExpDLL int lbm_event_queue_getopt(lbm_event_queue_t *evq, const char *optname, void *optval, size_t *optlen);

/** As above, as text. Context thread: yes. */
LBMExpDLL int lbm_event_queue_str_getopt(lbm_event_queue_t *evq, const char *optname, char *optval, size_t *optlen);

/*
 * Statistics. Counters are cumulative since creation or reset unless marked "now" in the structure, and read without
 * stopping traffic. Array calls take the number of entries in *num and return the number filled; when the array is too
 * small they fail with LBM_EINVAL and *num tells the need.
 */

/** Sends a monitoring packet on a source. Context thread: yes. */
LBMExpDLL int lbm_src_send_lbmmon_stats(lbm_src_t *src, char *msg, size_t len, int lbmmon_type);

/** Statistics of the session of a source. Context thread: yes. */
LBMExpDLL int lbm_src_retrieve_transport_stats(lbm_src_t *src, lbm_src_transport_stats_t *stats);

/** Statistics of the session of a smart source. Context thread: yes. */
LBMExpDLL int lbm_ssrc_retrieve_transport_stats(lbm_ssrc_t *ssrc, lbm_src_transport_stats_t *stats);

/** Zeroes them. Context thread: yes. */
LBMExpDLL int lbm_src_reset_transport_stats(lbm_src_t *src);

/** Zeroes them. Context thread: yes. */
LBMExpDLL int lbm_ssrc_reset_transport_stats(lbm_ssrc_t *ssrc);

/**
 * Statistics of one session of a receiver, named by its source string with or without topic index. Context thread:
 * yes.
 */
LBMExpDLL int lbm_rcv_retrieve_transport_stats(lbm_rcv_t *rcv, const char *source, lbm_rcv_transport_stats_t *stats);

/** Zeroes them. Context thread: yes. */
LBMExpDLL int lbm_rcv_reset_transport_stats(lbm_rcv_t *rcv, const char *source);

/** Statistics of all sessions of a receiver, for programs compiled before the _ex form. Context thread: yes. */
LBMExpDLL int lbm_rcv_retrieve_all_transport_stats(lbm_rcv_t *rcv, int *num, lbm_rcv_transport_stats_t *stats);

/** Statistics of all sessions of a receiver; size is that of one element. Context thread: yes. */
LBMExpDLL int lbm_rcv_retrieve_all_transport_stats_ex(lbm_rcv_t *rcv, int *num, int size,
                                                      lbm_rcv_transport_stats_t *stats);

/** Zeroes them. Context thread: yes. */
LBMExpDLL int lbm_rcv_reset_all_transport_stats(lbm_rcv_t *rcv);

/**
 * Statistics of all sessions that the context receives, for programs compiled before the _ex form. Context thread:
 * yes.
 */
LBMExpDLL int lbm_context_retrieve_rcv_transport_stats(lbm_context_t *ctx, int *num, lbm_rcv_transport_stats_t *stats);

/** Statistics of all sessions that the context receives. Context thread: yes. */
LBMExpDLL int lbm_context_retrieve_rcv_transport_stats_ex(lbm_context_t *ctx, int *num, int size,
                                                          lbm_rcv_transport_stats_t *stats);

/** Zeroes them. Context thread: yes. */
LBMExpDLL int lbm_context_reset_rcv_transport_stats(lbm_context_t *ctx);

/**
 * Statistics of all sessions that the context sends, for programs compiled before the _ex form. Context thread: yes.
 */
LBMExpDLL int lbm_context_retrieve_src_transport_stats(lbm_context_t *ctx, int *num, lbm_src_transport_stats_t *stats);

/** Statistics of all sessions that the context sends. Context thread: yes. */
LBMExpDLL int lbm_context_retrieve_src_transport_stats_ex(lbm_context_t *ctx, int *num, int size,
                                                          lbm_src_transport_stats_t *stats);

/** Zeroes them. Context thread: yes. */
LBMExpDLL int lbm_context_reset_src_transport_stats(lbm_context_t *ctx);

/** Statistics of an event queue. Context thread: yes. */
LBMExpDLL int lbm_event_queue_retrieve_stats(lbm_event_queue_t *evq, lbm_event_queue_stats_t *stats);

/** Zeroes them. Context thread: yes. */
LBMExpDLL int lbm_event_queue_reset_stats(lbm_event_queue_t *evq);

/** Statistics of a context. Context thread: yes. */
LBMExpDLL int lbm_context_retrieve_stats(lbm_context_t *ctx, lbm_context_stats_t *stats);

/** Zeroes them. Context thread: yes. */
LBMExpDLL int lbm_context_reset_stats(lbm_context_t *ctx);

/** Statistics of the sessions that send immediate messages. Context thread: yes. */
LBMExpDLL int lbm_context_retrieve_im_src_transport_stats(lbm_context_t *ctx, int *num, int size,
                                                          lbm_src_transport_stats_t *stats);

/** Zeroes them. Context thread: yes. */
LBMExpDLL int lbm_context_reset_im_src_transport_stats(lbm_context_t *ctx);

/** Statistics of the sessions that receive immediate messages. Context thread: yes. */
LBMExpDLL int lbm_context_retrieve_im_rcv_transport_stats(lbm_context_t *ctx, int *num, int size,
                                                          lbm_rcv_transport_stats_t *stats);

/** Zeroes them. Context thread: yes. */
LBMExpDLL int lbm_context_reset_im_rcv_transport_stats(lbm_context_t *ctx);

/* Source strings: the text form of a transport session. */

/** Takes a source string apart. infosize is the size of the structure the caller knows. Context thread: yes. */
LBMExpDLL int lbm_transport_source_parse(const char *source, lbm_transport_source_info_t *info, size_t infosize);

/**
 * Writes a source string. *size is the room in bytes and becomes the length of the text; "[index]" is appended when
 * topic_idx is not 0. Context thread: yes.
 */
LBMExpDLL int lbm_transport_source_format(const lbm_transport_source_info_t *info, size_t infosize, char *source,
                                          size_t *size);

/* Immediate messages: sent to a context without a source. */

/**
 * Sets the callback for immediate messages without topic, NULL for none. It replaces the one before, whose events leave
 * their queue when that purges those of closed objects. Context thread: yes.
 */
LBMExpDLL int lbm_context_rcv_immediate_msgs(lbm_context_t *ctx, lbm_immediate_msg_cb_proc proc, void *clientd,
                                             lbm_event_queue_t *evq);

/** Sets the callback for immediate messages whose topic has no receiver, NULL for none. Context thread: yes. */
LBMExpDLL int lbm_context_rcv_immediate_topic_msgs(lbm_context_t *ctx, lbm_immediate_msg_cb_proc proc, void *clientd,
                                                   lbm_event_queue_t *evq);

/** Sends a message to one context, named by target. Context thread: yes. */
LBMExpDLL int lbm_unicast_immediate_message(lbm_context_t *ctx, const char *target, const char *topic, const char *data,
                                            size_t len, int flags);

/** As a request. Context thread: yes. */
LBMExpDLL int lbm_unicast_immediate_request(lbm_request_t **reqp, lbm_context_t *ctx, const char *target,
                                            const char *topic, const char *data, size_t len, lbm_request_cb_proc proc,
                                            void *clientd, lbm_event_queue_t *evq, int flags);

/** Sends a message to all contexts. Context thread: yes. */
LBMExpDLL int lbm_multicast_immediate_message(lbm_context_t *ctx, const char *topic, const char *data, size_t len,
                                              int flags);

/** As a request. Context thread: yes. */
LBMExpDLL int lbm_multicast_immediate_request(lbm_request_t **reqp, lbm_context_t *ctx, const char *topic,
                                              const char *data, size_t len, lbm_request_cb_proc proc, void *clientd,
                                              lbm_event_queue_t *evq, int flags);

/* Requests and responses. */

/** Sends a response; any result >= 0 is success. On the context thread with LBM_SRC_NONBLOCK. Context thread: yes. */
LBMExpDLL int lbm_send_response(lbm_response_t *resp, const char *data, size_t len, int flags);

/** Frees a response handle that was taken out of its message. Context thread: yes. */
LBMExpDLL int lbm_response_delete(lbm_response_t *resp);

/** Frees the bytes. Context thread: yes. */
LBMExpDLL int lbm_serialized_response_delete(lbm_serialized_response_t *serialized_response);

/** Response handle as bytes; ends with lbm_serialized_response_delete(). Context thread: yes. */
LBMExpDLL lbm_serialized_response_t *lbm_serialize_response(lbm_response_t *resp);

/** Response handle from bytes. Context thread: yes. */
LBMExpDLL lbm_response_t *lbm_deserialize_response(lbm_context_t *ctx, lbm_serialized_response_t *serialized_response);

/** Sends a request; proc gets the responses. Ends with lbm_request_delete(). Context thread: yes. */
LBMExpDLL int lbm_send_request(lbm_request_t **reqp, lbm_src_t *src, const char *data, size_t len,
                               lbm_request_cb_proc proc, void *clientd, lbm_event_queue_t *evq, int send_flags);

/** As lbm_send_request(), with extras. Context thread: yes. */
LBMExpDLL int lbm_send_request_ex(lbm_request_t **reqp, lbm_src_t *src, const char *data, size_t len,
                                  lbm_request_cb_proc proc, void *clientd, lbm_event_queue_t *evq, int send_flags,
                                  lbm_src_send_ex_info_t *exinfo);

/** Sends a request on a smart source. Context thread: yes. */
LBMExpDLL int lbm_ssrc_send_request_ex(lbm_request_t **reqp, lbm_ssrc_t *ssrc, const char *usr_bufp, size_t len,
                                       lbm_request_cb_proc proc, void *clientd, lbm_event_queue_t *evq, int send_flags,
                                       lbm_ssrc_send_ex_info_t *exinfo);

/** Ends a request; later responses are dropped. Context thread: no. */
LBMExpDLL int lbm_request_delete(lbm_request_t *req);

/** As lbm_request_delete(), with a cancel callback. Context thread: yes. */
LBMExpDLL int lbm_request_delete_ex(lbm_request_t *req, lbm_event_queue_cancel_cb_info_t *cbinfo);

/* Message properties: named values that travel with a message. An object is for one thread at a time. */

/** Makes an empty properties object. Context thread: yes. */
LBMExpDLL int lbm_msg_properties_create(lbm_msg_properties_t **properties);

/** Frees the object. Context thread: yes. */
LBMExpDLL int lbm_msg_properties_delete(lbm_msg_properties_t *properties);

/** Sets a property; name up to 250 characters. Context thread: yes. */
LBMExpDLL int lbm_msg_properties_set(lbm_msg_properties_t *properties, const char *name, const void *value, int type,
                                     size_t size);

/** Removes a property. Context thread: yes. */
LBMExpDLL int lbm_msg_properties_clear(lbm_msg_properties_t *properties, const char *name);

/** Reads a property. *size is the room in bytes and becomes the size. Context thread: yes. */
LBMExpDLL int lbm_msg_properties_get(lbm_msg_properties_t *properties, const char *name, void *value, int *type,
                                     size_t *size);

/** Makes an iterator. Context thread: yes. */
LBMExpDLL int lbm_msg_properties_iter_create(lbm_msg_properties_iter_t **iterp);

/** Frees the object. Context thread: yes. */
LBMExpDLL int lbm_msg_properties_iter_delete(lbm_msg_properties_iter_t *iter);

/** Goes to the first property; -1 when there is none. Context thread: yes. */
LBMExpDLL int lbm_msg_properties_iter_first(lbm_msg_properties_iter_t *iter, lbm_msg_properties_t *properties);

/** Goes to the next property; -1 with type LBM_MSG_PROPERTY_NONE at the end. Context thread: yes. */
LBMExpDLL int lbm_msg_properties_iter_next(lbm_msg_properties_iter_t *iter);

/* Application headers: chains of application bytes beside the payload. Deprecated. */

/** Makes an empty chain. Context thread: yes. */
LBMExpDLL int lbm_apphdr_chain_create(lbm_apphdr_chain_t **chain);

/** Frees the object. Context thread: yes. */
LBMExpDLL int lbm_apphdr_chain_delete(lbm_apphdr_chain_t *chain);

/** Appends a copy of an element. Context thread: yes. */
LBMExpDLL int lbm_apphdr_chain_append_elem(lbm_apphdr_chain_t *chain, lbm_apphdr_chain_elem_t *elem);

/** Iterator over a chain; -1 when it is empty. Context thread: yes. */
LBMExpDLL int lbm_apphdr_chain_iter_create(lbm_apphdr_chain_iter_t **chain_iter, lbm_apphdr_chain_t *chain);

/** Iterator over the headers of a message; -1 when it has none. Context thread: yes. */
LBMExpDLL int lbm_apphdr_chain_iter_create_from_msg(lbm_apphdr_chain_iter_t **chain_iter, lbm_msg_t *msg);

/** Frees the object. Context thread: yes. */
LBMExpDLL int lbm_apphdr_chain_iter_delete(lbm_apphdr_chain_iter_t *chain_iter);

/** Goes to the first element. Context thread: yes. */
LBMExpDLL int lbm_apphdr_chain_iter_first(lbm_apphdr_chain_iter_t **chain_iter);

/** 1 while a further element exists, else 0. Context thread: yes. */
LBMExpDLL int lbm_apphdr_chain_iter_done(lbm_apphdr_chain_iter_t **chain_iter);

/** Goes to the next element; -1 at the end. Context thread: yes. */
LBMExpDLL int lbm_apphdr_chain_iter_next(lbm_apphdr_chain_iter_t **chain_iter);

/** The present element; belongs to the chain. Context thread: yes. */
LBMExpDLL lbm_apphdr_chain_elem_t *lbm_apphdr_chain_iter_current(lbm_apphdr_chain_iter_t **chain_iter);

/* Hot failover: several sources send the same numbered messages, the receiver delivers each once. */

/** Makes a source that sends numbered messages. Context thread: no. */
LBMExpDLL int lbm_hf_src_create(lbm_src_t **srcp, lbm_context_t *ctx, lbm_topic_t *topic, lbm_src_cb_proc proc,
                                void *clientd, lbm_event_queue_t *evq);

/** Sends a message under a hot-failover number. Context thread: yes. */
LBMExpDLL int lbm_hf_src_send(lbm_src_t *src, const char *msg, size_t len, lbm_uint_t sqn, int flags);

/** Sends a message under a hot-failover number. Context thread: yes. */
LBMExpDLL int lbm_hf_src_send_ex(lbm_src_t *src, const char *msg, size_t len, lbm_uint_t sqn, int flags,
                                 lbm_src_send_ex_info_t *exinfo);

/** Sends a message under a hot-failover number. Context thread: yes. */
LBMExpDLL int lbm_hf_src_sendv(lbm_src_t *src, const lbm_iovec_t *iov, int num, lbm_uint_t sqn, int flags);

/** Sends a message under a hot-failover number. Context thread: yes. */
LBMExpDLL int lbm_hf_src_sendv_ex(lbm_src_t *src, const lbm_iovec_t *iov, int num, lbm_uint_t sqn, int flags,
                                  lbm_src_send_ex_info_t *exinfo);

/** Tells receivers which number comes next. Context thread: yes. */
LBMExpDLL int lbm_hf_src_send_rcv_reset(lbm_src_t *src, int flags, lbm_src_send_ex_info_t *exinfo);

/** Makes a receiver that delivers each number once. Context thread: no. */
LBMExpDLL int lbm_hf_rcv_create(lbm_hf_rcv_t **hfrcvp, lbm_context_t *ctx, lbm_topic_t *topic, lbm_rcv_cb_proc proc,
                                void *clientd, lbm_event_queue_t *evq);

/** Frees the object. Context thread: no. */
LBMExpDLL int lbm_hf_rcv_delete(lbm_hf_rcv_t *hfrcv);

/** As the plain form, with a cancel callback. Context thread: no. */
LBMExpDLL int lbm_hf_rcv_delete_ex(lbm_hf_rcv_t *hfrcv, lbm_event_queue_cancel_cb_info_t *cbinfo);

/** Hot-failover receiver around a receiver, NULL for none. Context thread: yes. */
LBMExpDLL lbm_hf_rcv_t *lbm_hf_rcv_from_rcv(lbm_rcv_t *rcv);

/** Receiver inside the hot-failover receiver; borrowed. Context thread: yes. */
LBMExpDLL lbm_rcv_t *lbm_rcv_from_hf_rcv(lbm_hf_rcv_t *hfrcv);

/* Options of a hot-failover receiver. */

/**
 * All options of the living object as text. *size is the number of entries in the array and becomes the number
 * written. Context thread: yes.
 */
LBMExpDLL int lbm_hf_rcv_topic_dump(lbm_hf_rcv_t *hfrcv, int *size, lbm_config_option_t *opts);

/* Hot failover over several contexts. Deprecated. */

/** Makes a hot-failover group for a topic. Context thread: no. */
LBMExpDLL int lbm_hfx_create(lbm_hfx_t **hfxp, lbm_hfx_attr_t *cattr, const char *symbol, lbm_rcv_cb_proc proc,
                             lbm_event_queue_t *evq);

/** Frees the object. Context thread: no. */
LBMExpDLL int lbm_hfx_delete(lbm_hfx_t *hfx);

/** As the plain form, with a cancel callback. Context thread: no. */
LBMExpDLL int lbm_hfx_delete_ex(lbm_hfx_t *hfx, lbm_event_queue_cancel_cb_info_t *cbinfo);

/** Adds a receiver of one context to the group. Context thread: no. */
LBMExpDLL int lbm_hfx_rcv_create(lbm_hfx_rcv_t **hfrcvp, lbm_hfx_t *hfx, lbm_context_t *ctx,
                                 lbm_rcv_topic_attr_t *rattr, void *clientd);

/** Receiver inside the HFX receiver; borrowed. Context thread: yes. */
LBMExpDLL lbm_rcv_t *lbm_rcv_from_hfx_rcv(lbm_hfx_rcv_t *hfxrcv);

/** Frees the object. Context thread: no. */
LBMExpDLL int lbm_hfx_rcv_delete(lbm_hfx_rcv_t *hfrcv);

/** As the plain form, with a cancel callback. Context thread: no. */
LBMExpDLL int lbm_hfx_rcv_delete_ex(lbm_hfx_rcv_t *hfrcv, lbm_event_queue_cancel_cb_info_t *cbinfo);

/* HFX options. */

/**
 * All options of the living object as text. *size is the number of entries in the array and becomes the number
 * written. Context thread: yes.
 */
LBMExpDLL int lbm_hfx_dump(lbm_hfx_t *hfx, int *size, lbm_config_option_t *opts);

/**
 * All options as text. *size is the number of entries in the array and becomes the number written. Context thread:
 * yes.
 */
LBMExpDLL int lbm_hfx_attr_dump(lbm_hfx_attr_t *attr, int *size, lbm_config_option_t *opts);

/** Number of HFX options: the room lbm_hfx_attr_dump() needs. Context thread: yes. */
LBMExpDLL int lbm_hfx_attr_option_size(void);

/** Makes an attribute object with the current defaults of HFX options. Context thread: yes. */
LBMExpDLL int lbm_hfx_attr_create(lbm_hfx_attr_t **attr);

/**
 * Makes an attribute object with the values of the XML configuration for the names given; fails when it forbids them.
 * Context thread: yes.
 */
LBMExpDLL int lbm_hfx_attr_create_from_xml(lbm_hfx_attr_t **attr, const char *topicname);

/**
 * Writes the values of the XML configuration for the names given into the object; fails when it forbids them. Context
 * thread: yes.
 */
LBMExpDLL int lbm_hfx_attr_set_from_xml(lbm_hfx_attr_t *attr, const char *topicname);

/** Frees it. Objects made from it are not affected. Context thread: yes. */
LBMExpDLL int lbm_hfx_attr_delete(lbm_hfx_attr_t *attr);

/** Sets an option from its binary form of optlen bytes. Context thread: yes. */
LBMExpDLL int lbm_hfx_attr_setopt(lbm_hfx_attr_t *attr, const char *optname, const void *optval, size_t optlen);

/** Sets an option from text, as in a configuration file. Context thread: yes. */
LBMExpDLL int lbm_hfx_attr_str_setopt(lbm_hfx_attr_t *attr, const char *optname, const char *optval);

/** Reads an option in binary form. *optlen is the room in bytes and becomes the size. Context thread: yes. */
LBMExpDLL int lbm_hfx_attr_getopt(lbm_hfx_attr_t *attr, const char *optname, void *optval, size_t *optlen);

/**
 * Reads an option as text. *optlen is the room in bytes, at least 80, and becomes the length. Context thread: yes.
 */
LBMExpDLL int lbm_hfx_attr_str_getopt(lbm_hfx_attr_t *attr, const char *optname, char *optval, size_t *optlen);

/** Changes an option of the living object; only those that may change during operation. Context thread: yes. */
LBMExpDLL int lbm_hfx_setopt(lbm_hfx_t *hfx, const char *optname, const void *optval, size_t optlen);

/** As above, from text. Context thread: yes. */
LBMExpDLL int lbm_hfx_str_setopt(lbm_hfx_t *hfx, const char *optname, const char *optval);

/** Reads an option of the living object in binary form. Context thread: yes. */
LBMExpDLL int lbm_hfx_getopt(lbm_hfx_t *hfx, const char *optname, void *optval, size_t *optlen);

/** As above, as text. Context thread: yes. */
LBMExpDLL int lbm_hfx_str_getopt(lbm_hfx_t *hfx, const char *optname, char *optval, size_t *optlen);

/**
 * All options of the living object as text. *size is the number of entries in the array and becomes the number
 * written. Context thread: yes.
 */
LBMExpDLL int lbm_hfx_rcv_topic_dump(lbm_hfx_rcv_t *hfxrcv, int *size, lbm_config_option_t *opts);

/*
 * Smart sources: publishers with preallocated buffers. The sends of one transport session are for one thread at a
 * time.
 */

/** Makes a smart source. LBT-RM and LBT-RU only; evq must be NULL. Context thread: no. */
LBMExpDLL int lbm_ssrc_create(lbm_ssrc_t **ssrcp, lbm_context_t *ctx, lbm_topic_t *topic, lbm_ssrc_cb_proc proc,
                              void *clientd, lbm_event_queue_t *evq);

/** Frees the object. Context thread: no. */
LBMExpDLL int lbm_ssrc_delete(lbm_ssrc_t *ssrc);

/** Payload bytes that fit without fragmenting. Context thread: yes. */
LBMExpDLL int lbm_ssrc_get_available_data_space(lbm_ssrc_t *ssrc, int *length);

/** Sends a buffer of the smart source. Context thread: yes. */
LBMExpDLL int lbm_ssrc_send_ex(lbm_ssrc_t *ssrc, const char *usr_bufp, size_t len, int flags,
                               lbm_ssrc_send_ex_info_t *info);

/** Takes a buffer of the smart source. Context thread: yes. */
LBMExpDLL int lbm_ssrc_buff_get(lbm_ssrc_t *const ssrc, char **const usr_bufp, const int flags);

/** Gives it back. Context thread: yes. */
LBMExpDLL int lbm_ssrc_buff_put(lbm_ssrc_t *const ssrc, const char *usr_bufp);

/* XSP: additional threads that receive transport sessions on behalf of a context. */

/** Makes an XSP with a thread of its own, or in sequential mode without. Context thread: no. */
LBMExpDLL int lbm_xsp_create(lbm_xsp_t **xspp, lbm_context_t *ctx, lbm_context_attr_t *cattr, lbm_xsp_attr_t *attr);

/** Frees the object. Context thread: no. */
LBMExpDLL int lbm_xsp_delete(lbm_xsp_t *xsp);

/** As lbm_context_process_events(). Context thread: no. */
LBMExpDLL int lbm_xsp_process_events(lbm_xsp_t *xsp, lbm_ulong_t msec);

/** As lbm_context_unblock(). Context thread: yes. */
LBMExpDLL int lbm_xsp_unblock(lbm_xsp_t *xsp);

/** As lbm_register_fd(). Context thread: no. */
LBMExpDLL int lbm_xsp_register_fd(lbm_xsp_t *xsp, lbm_handle_t handle, lbm_fd_cb_proc proc, void *clientd,
                                  lbm_event_queue_t *evq, lbm_ulong_t ev);

/** As lbm_cancel_fd(). Context thread: no. */
LBMExpDLL int lbm_xsp_cancel_fd(lbm_xsp_t *xsp, lbm_handle_t handle, lbm_ulong_t ev);

/* XSP options. */

/**
 * All options of the living object as text. *size is the number of entries in the array and becomes the number
 * written. Context thread: yes.
 */
LBMExpDLL int lbm_xsp_dump(lbm_xsp_t *xsp, int *size, lbm_config_option_t *opts);

/**
 * All options as text. *size is the number of entries in the array and becomes the number written. Context thread:
 * yes.
 */
LBMExpDLL int lbm_xsp_attr_dump(lbm_xsp_attr_t *attr, int *size, lbm_config_option_t *opts);

/** Number of XSP options: the room lbm_xsp_attr_dump() needs. Context thread: yes. */
LBMExpDLL int lbm_xsp_attr_option_size(void);

/** Makes an attribute object with the current defaults of XSP options. Context thread: yes. */
LBMExpDLL int lbm_xsp_attr_create(lbm_xsp_attr_t **attr);

/** Frees it. Objects made from it are not affected. Context thread: yes. */
LBMExpDLL int lbm_xsp_attr_delete(lbm_xsp_attr_t *attr);

/** Sets an option from its binary form of optlen bytes. Context thread: yes. */
LBMExpDLL int lbm_xsp_attr_setopt(lbm_xsp_attr_t *attr, const char *optname, const void *optval, size_t optlen);

/** Sets an option from text, as in a configuration file. Context thread: yes. */
LBMExpDLL int lbm_xsp_attr_str_setopt(lbm_xsp_attr_t *attr, const char *optname, const char *optval);

/** Reads an option in binary form. *optlen is the room in bytes and becomes the size. Context thread: yes. */
LBMExpDLL int lbm_xsp_attr_getopt(lbm_xsp_attr_t *attr, const char *optname, void *optval, size_t *optlen);

/**
 * Reads an option as text. *optlen is the room in bytes, at least 80, and becomes the length. Context thread: yes.
 */
LBMExpDLL int lbm_xsp_attr_str_getopt(lbm_xsp_attr_t *attr, const char *optname, char *optval, size_t *optlen);

/* Persistence. */

/** Acknowledges up to this message. Context thread: yes. */
LBMExpDLL int lbm_msg_ume_send_explicit_ack(lbm_msg_t *msg);

/** 1 when lbm_msg_ume_send_explicit_ack() is possible, else 0. Context thread: yes. */
LBMExpDLL int lbm_msg_ume_can_send_explicit_ack(lbm_msg_t *msg);

/** Ends the registration with the stores; events report the result. Context thread: yes. */
LBMExpDLL int lbm_src_ume_deregister(lbm_src_t *src);

/** Ends the registration with the stores; events report the result. Context thread: yes. */
LBMExpDLL int lbm_ssrc_ume_deregister(lbm_ssrc_t *ssrc);

/** Ends the registration with the stores; events report the result. Context thread: yes. */
LBMExpDLL int lbm_rcv_ume_deregister(lbm_rcv_t *rcv);

/** Ends the registration with the stores; events report the result. Context thread: yes. */
LBMExpDLL int lbm_wrcv_ume_deregister(lbm_wildcard_rcv_t *wrcv);

/** Messages in flight; proc may correct their number. Context thread: yes. */
LBMExpDLL int lbm_src_get_inflight(lbm_src_t *src, int type, int *inflight, lbm_flight_size_set_inflight_cb_proc proc,
                                   void *clientd);

/** Messages and bytes in flight; proc may correct them. Context thread: yes. */
LBMExpDLL int lbm_src_get_inflight_ex(lbm_src_t *src, int type, lbm_flight_size_inflight_t *inflight,
                                      lbm_flight_size_set_inflight_ex_cb_proc proc, void *clientd);

/** Messages in flight; proc may correct their number. Context thread: yes. */
LBMExpDLL int lbm_ssrc_get_inflight(lbm_ssrc_t *ssrc, int type, int *inflight,
                                    lbm_flight_size_set_inflight_cb_proc proc, void *clientd);

/** Messages and bytes in flight; proc may correct them. Context thread: yes. */
LBMExpDLL int lbm_ssrc_get_inflight_ex(lbm_ssrc_t *ssrc, int type, lbm_flight_size_inflight_t *inflight,
                                       lbm_flight_size_set_inflight_ex_cb_proc proc, void *clientd);

/** Declares a message stable. Context thread: yes. */
LBMExpDLL int lbm_ume_src_msg_stable(lbm_src_t *src, lbm_uint32_t sqn);

/** Takes the acknowledgement out of a message; ends with lbm_ume_ack_delete(). Context thread: yes. */
LBMExpDLL lbm_ume_rcv_ack_t *lbm_msg_extract_ume_ack(lbm_msg_t *msg);

/** Frees the acknowledgement. Context thread: yes. */
LBMExpDLL int lbm_ume_ack_delete(lbm_ume_rcv_ack_t *ack);

/** Acknowledges up to this message. Context thread: yes. */
LBMExpDLL int lbm_ume_ack_send_explicit_ack(lbm_ume_rcv_ack_t *ack, lbm_uint_t sqn);

/** Takes a number off the list to be acknowledged. Context thread: yes. */
LBMExpDLL int lbm_ume_ack_mark_not_outstanding(lbm_ume_rcv_ack_t *ack, lbm_uint_t sqn);

/** 1 when persistence is built in, else 0. Context thread: yes. */
LBMExpDLL int lbm_is_ume_capable(void);

/* Queuing and ultra load balancing. */

/** Id of a queue message. Context thread: yes. */
LBMExpDLL int lbm_msg_retrieve_msgid(lbm_msg_t *msg, lbm_umq_msgid_t *id);

/** Index of a queue message. Context thread: yes. */
LBMExpDLL int lbm_msg_retrieve_umq_index(lbm_msg_t *msg, lbm_umq_index_info_t *info);

/** Hands the message to another receiver. Context thread: yes. */
LBMExpDLL int lbm_msg_umq_reassign(lbm_msg_t *msg, int flags);

/** Ends the registration with a queue; events report the result. Context thread: yes. */
LBMExpDLL int lbm_rcv_umq_deregister(lbm_rcv_t *rcv, const char *queue_name);

/** Takes no new indexes. Context thread: yes. */
LBMExpDLL int lbm_rcv_umq_index_stop_assignment(lbm_rcv_t *rcv, const char *queue_name);

/** Takes new indexes again. Context thread: yes. */
LBMExpDLL int lbm_rcv_umq_index_start_assignment(lbm_rcv_t *rcv, const char *queue_name);

/** Asks for an index, a random one when NULL. Context thread: yes. */
LBMExpDLL int lbm_rcv_umq_index_reserve(lbm_rcv_t *rcv, const char *queue_name, lbm_umq_index_info_t *index_info);

/** Gives an index back. Context thread: yes. */
LBMExpDLL int lbm_rcv_umq_index_release(lbm_rcv_t *rcv, const char *queue_name, lbm_umq_index_info_t *index_info);

/** Takes no new indexes. Context thread: yes. */
LBMExpDLL int lbm_wildcard_rcv_umq_index_stop_assignment(lbm_wildcard_rcv_t *wrcv, const char *queue_name);

/** Takes new indexes again. Context thread: yes. */
LBMExpDLL int lbm_wildcard_rcv_umq_index_start_assignment(lbm_wildcard_rcv_t *wrcv, const char *queue_name);

/** Gives an index back. Context thread: yes. */
LBMExpDLL int lbm_wildcard_rcv_umq_index_release(lbm_wildcard_rcv_t *wrcv, const char *queue_name,
                                                 lbm_umq_index_info_t *index_info);

/** Ends the registration with a queue; events report the result. Context thread: yes. */
LBMExpDLL int lbm_wildcard_rcv_umq_deregister(lbm_wildcard_rcv_t *wrcv, const char *queue_name);

/** Deprecated. Context thread: yes. */
LBMExpDLL int lbm_queue_immediate_message(lbm_context_t *ctx, const char *qname, const char *topic, const char *data,
                                          size_t len, int flags, lbm_src_send_ex_info_t *info);

/** Messages in flight; proc may correct their number. Context thread: yes. */
LBMExpDLL int lbm_ctx_umq_get_inflight(lbm_context_t *ctx, const char *qname, int *inflight,
                                       lbm_flight_size_set_inflight_cb_proc proc, void *clientd);

/** Declares a message stable. Context thread: yes. */
LBMExpDLL int lbm_umq_ctx_msg_stable(lbm_context_t *ctx, const char *qname, lbm_umq_msgid_t *msg_id);

/** Browses a queue. Deprecated. Context thread: yes. */
LBMExpDLL int lbm_ctx_umq_queue_topic_list(lbm_context_t *ctx, const char *queue_name,
                                           lbm_async_operation_func_t *async_opfunc);

/** Parses a selector; the result is the length of its text. Context thread: yes. */
LBMExpDLL int lbm_umq_msg_selector_create(lbm_umq_msg_selector_t **selector, char *str, lbm_uint16_t len);

/** Frees the selector. Context thread: yes. */
LBMExpDLL int lbm_umq_msg_selector_delete(lbm_umq_msg_selector_t *selector);

/** Browses a queue. Deprecated. Context thread: yes. */
LBMExpDLL int lbm_rcv_umq_queue_msg_list(lbm_rcv_t *rcv, const char *queue_name, lbm_umq_msg_selector_t *selector,
                                         lbm_async_operation_func_t *async_opfunc);

/** Browses a queue. Deprecated. Context thread: yes. */
LBMExpDLL int lbm_rcv_umq_queue_msg_retrieve(lbm_rcv_t *rcv, const char *queue_name, lbm_umq_msgid_t *msgids,
                                             int num_msgids, lbm_async_operation_func_t *async_opfunc);

/** State of an asynchronous operation. Context thread: yes. */
LBMExpDLL int lbm_async_operation_status(lbm_async_operation_handle_t handle, int flags);

/** Cancels an asynchronous operation. Context thread: yes. */
LBMExpDLL int lbm_async_operation_cancel(lbm_async_operation_handle_t handle, int flags);

/** 1 when queuing is built in, else 0. Context thread: yes. */
LBMExpDLL int lbm_is_umq_capable(void);

/* Debug log and deliberate loss, for support and tests. */

/**
 * File of the debug log, appended to; NULL: standard error. The text is copied. LBM_DEBUG_FILENAME comes before it. Any
 * thread; in callbacks, too.
 */
LBMExpDLL void lbm_debug_filename(const char *filename);

/**
 * Which debug lines are written; 0, the default: none. 1: lines of the log, 2: errors, 4: contexts, sources and
 * receivers that begin and end, 8: datagrams of topic resolution, 16: sessions that are joined and left. LBM_DEBUG_MASK
 * comes before it. Context thread: yes.
 */
LBMExpDLL void lbm_debug_mask(lbm_uint64_t mask);

/**
 * Bytes at which the file rolls over to NAME.1, that to NAME.2 and so on; 0, the default: never; at most
 * LBM_DEBUG_LOG_ROLLOVER_SIZE_MAX. LBM_DEBUG_MAXSIZE comes before it. Context thread: yes.
 */
LBMExpDLL void lbm_debugfile_maxsize(lbm_uint64_t size);

/** Number of rolled files that are kept, 10 by default. LBM_DEBUG_MAX_ROLLOVER_FILES comes before it. Context thread:
 * yes. */
LBMExpDLL void lbm_debugfile_max_rollover(lbm_uint32_t size);

/** 1: lines wait in memory, up to 64 KiB, until there is no room or the library goes. Context thread: yes. */
LBMExpDLL void lbm_debug_noflush(int on);

/** 1: debug lines also go to the log, except those of the log itself and of errors. Context thread: yes. */
LBMExpDLL void lbm_log_debug(int on);

/** Writes the rings of all threads to a file, over what is there or behind it. 0, or -1. Context thread: yes. */
LBMExpDLL int lbm_debug_dump(const char *filename, int append);

/**
 * Keeps the last maxsz bytes (4096..16777216) of each thread in memory, in place of the file, until lbm_debug_dump();
 * 0: no more. What was kept before is lost. Context thread: yes.
 */
LBMExpDLL void lbm_debug_ring_buffer(size_t maxsz);

/** 1: lines in rings have the time of day; 0: seconds of the monotonic clock. Context thread: yes. */
LBMExpDLL void lbm_debug_ring_buffer_walltime(int use);

/** Percent of datagrams to be dropped by receivers. Context thread: yes. */
LBMExpDLL void lbm_set_uim_loss_rate(int rate);

/** Percent of datagrams to be dropped by receivers. Context thread: yes. */
LBMExpDLL void lbm_set_lbtrm_loss_rate(int rate);

/** Percent of datagrams to be dropped by sources. Context thread: yes. */
LBMExpDLL void lbm_set_lbtrm_src_loss_rate(int rate);

/** Percent of datagrams to be dropped by receivers. Context thread: yes. */
LBMExpDLL void lbm_set_lbtru_loss_rate(int rate);

/** Percent of datagrams to be dropped by sources. Context thread: yes. */
LBMExpDLL void lbm_set_lbtru_src_loss_rate(int rate);

/* User and role store of the daemons, and the inert credentials call. */

/** Does nothing; 0. Context thread: yes. */
LBMExpDLL int lbm_auth_set_credentials(lbm_context_t *ctx, const char *name, size_t name_len, const char *passwd,
                                       size_t passwd_len, lbm_cred_callback_fn cbfn, void *clientd, int auth_required);

/** Opens the user file. Context thread: yes. */
LBMExpDLL int lbm_authstorage_open_storage_xml(char *filename);

/** Closes it. Context thread: yes. */
LBMExpDLL void lbm_authstorage_close_storage_xml(void);

/** 1 when the user may run the command, 0 when not. Context thread: yes. */
LBMExpDLL int lbm_authstorage_checkpermission(char *username, char *command);

/** Adds a user. Context thread: yes. */
LBMExpDLL int lbm_authstorage_addtpnam(const char *username, const char *pass, unsigned char flags);

/** Removes a user. Context thread: yes. */
LBMExpDLL int lbm_authstorage_deltpnam(const char *username);

/** Gives a role to a user. Context thread: yes. */
LBMExpDLL int lbm_authstorage_user_add_role(const char *username, const char *role);

/** Takes a role from a user. Context thread: yes. */
LBMExpDLL int lbm_authstorage_user_del_role(const char *username, const char *role);

/** Reads the roles. Context thread: yes. */
LBMExpDLL int lbm_authstorage_load_roletable(void);

/** Forgets the roles. Context thread: yes. */
LBMExpDLL int lbm_authstorage_unload_roletable(void);

/** Lets a role run an action. Context thread: yes. */
LBMExpDLL int lbm_authstorage_roletable_add_role_action(const char *rolename, const char *action);

/** Prints the roles. Context thread: yes. */
LBMExpDLL int lbm_authstorage_print_roletable(void);

/**
 * Programs compiled today pass the size of one element, so that the structures may grow. These macros hide the
 * functions of the same names, which stay in the library for programs compiled before; hence they come after the
 * prototypes.
 */
#ifndef LBM_INTERNAL_USE_ONLY
#define lbm_rcv_retrieve_all_transport_stats(r, n, s)                                                                  \
    lbm_rcv_retrieve_all_transport_stats_ex((r), (n), sizeof(lbm_rcv_transport_stats_t), (s))
#define lbm_context_retrieve_rcv_transport_stats(c, n, s)                                                              \
    lbm_context_retrieve_rcv_transport_stats_ex((c), (n), sizeof(lbm_rcv_transport_stats_t), (s))
#define lbm_context_retrieve_src_transport_stats(c, n, s)                                                              \
    lbm_context_retrieve_src_transport_stats_ex((c), (n), sizeof(lbm_src_transport_stats_t), (s))
#endif

#ifdef __cplusplus
}
#endif

#endif
