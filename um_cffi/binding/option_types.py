"""Options of libum for type checkers, made by tools/options_py.py from options.def; do not edit.

Nothing imports this while a program runs: that takes a tenth of the time in which the package is read.
"""

# ruff: noqa: E501 - one option on a line

from __future__ import annotations

from typing import Literal, TypedDict, Union

Number = Union[int, str]
Switch = Union[bool, int, str]


class ContextOptions(TypedDict, total=False):
    """Options of the scope context; see docs/options.md for what each does."""

    broker: str
    compatibility_include_pre_um_6_0_behavior: Switch
    compression: Literal["none", "lz4"]
    context_name: str
    dbl_lbtrm_acceleration: Switch
    dbl_lbtru_acceleration: Switch
    dbl_mim_acceleration: Switch
    dbl_resolver_acceleration: Switch
    default_interface: str
    delivery_control_maximum_total_map_entries: Number
    delivery_control_message_batching: Switch
    disable_extended_topic_resolution_message_options: Switch
    dynamic_fragmentation_reduction: Switch
    fd_management_type: Literal["poll", "select", "epoll", "devpoll", "wsaeventselect", "wincompport"]
    file_descriptor_management_behavior: Literal["pend", "busy_wait"]
    mim_activity_timeout: Number
    mim_address: str
    mim_delivery_control_activity_check_interval: Number
    mim_delivery_control_activity_timeout: Number
    mim_delivery_control_loss_check_interval: Number
    mim_delivery_control_order_tablesz: Number
    mim_destination_port: Number
    mim_ignore_interval: Number
    mim_implicit_batching_interval: Number
    mim_implicit_batching_minimum_length: Number
    mim_incoming_address: str
    mim_incoming_destination_port: Number
    mim_nak_backoff_interval: Number
    mim_nak_generation_interval: Number
    mim_nak_initial_backoff_interval: Number
    mim_nak_suppress_interval: Number
    mim_ordered_delivery: Switch
    mim_outgoing_address: str
    mim_outgoing_destination_port: Number
    mim_send_naks: Switch
    mim_sm_maximum_interval: Number
    mim_sm_minimum_interval: Number
    mim_sqn_window_increment: Number
    mim_sqn_window_size: Number
    mim_src_deletion_timeout: Number
    mim_tgsz: Number
    mim_transmission_window_limit: Number
    mim_transmission_window_size: Number
    monitor_appid: str
    monitor_format: Literal["csv", "pb"]
    monitor_format_opts: str
    monitor_interval: Number
    monitor_transport: Literal["lbm", "lbmsnmp"]
    monitor_transport_opts: str
    multiple_receive_maximum_datagrams: Number
    network_compatibility_mode: Number
    onload_acceleration_stack_name: str
    operational_mode: Literal["embedded", "sequential"]
    receive_thread_pool_size: Number
    receiver_callback_service_time_enabled: Switch
    request_tcp_activity_timeout: Number
    request_tcp_bind_request_port: Switch
    request_tcp_exclusiveaddr: Switch
    request_tcp_interface: str
    request_tcp_listen_backlog: Number
    request_tcp_port: Number
    request_tcp_port_high: Number
    request_tcp_port_low: Number
    request_tcp_reuseaddr: Switch
    resolver_active_source_interval: Number
    resolver_active_threshold: Number
    resolver_cache: Switch
    resolver_context_advertisement_interval: Number
    resolver_context_name_activity_timeout: Number
    resolver_context_name_query_duration: Number
    resolver_context_name_query_maximum_interval: Number
    resolver_context_name_query_minimum_interval: Number
    resolver_datagram_max_size: Number
    resolver_disable_udp_topic_resolution: Switch
    resolver_domain_id_active_propagation_timeout: Number
    resolver_initial_advertisement_bps: Number
    resolver_initial_advertisements_per_second: Number
    resolver_initial_queries_per_second: Number
    resolver_initial_query_bps: Number
    resolver_maximum_advertisements: Number
    resolver_maximum_queries: Number
    resolver_multicast_address: str
    resolver_multicast_incoming_address: str
    resolver_multicast_incoming_port: Number
    resolver_multicast_interface: str
    resolver_multicast_outgoing_address: str
    resolver_multicast_outgoing_port: Number
    resolver_multicast_port: Number
    resolver_multicast_receiver_socket_buffer: Number
    resolver_multicast_ttl: Number
    resolver_query_interval: Number
    resolver_receiver_datagram_max_size: Number
    resolver_receiver_map_tablesz: Number
    resolver_service: str
    resolver_service_interest_mode: Literal["filter", "flood"]
    resolver_source_datagram_max_size: Number
    resolver_source_map_tablesz: Number
    resolver_string_hash_function: str
    resolver_sustain_advertisement_bps: Number
    resolver_sustain_advertisements_per_second: Number
    resolver_sustain_queries_per_second: Number
    resolver_sustain_query_bps: Number
    resolver_ud_acceleration: Switch
    resolver_unicast_activity_timeout: Number
    resolver_unicast_address: str
    resolver_unicast_change_interval: Number
    resolver_unicast_check_interval: Number
    resolver_unicast_daemon: str
    resolver_unicast_destination_port: Number
    resolver_unicast_force_alive: Switch
    resolver_unicast_ignore_unknown_source: Switch
    resolver_unicast_interface: str
    resolver_unicast_keepalive_interval: Number
    resolver_unicast_port: Number
    resolver_unicast_port_high: Number
    resolver_unicast_port_low: Number
    resolver_unicast_receiver_socket_buffer: Number
    resolver_wildcard_queries_per_second: Number
    resolver_wildcard_query_bps: Number
    resolver_wildcard_receiver_map_tablesz: Number
    response_session_maximum_buffer: Number
    response_session_sender_socket_buffer: Number
    response_tcp_activity_timeout: Number
    response_tcp_deletion_timeout: Number
    response_tcp_interface: str
    response_tcp_nodelay: Switch
    source_includes_topic_index: Switch
    tls_certificate: str
    tls_certificate_key: str
    tls_certificate_key_password: str
    tls_cipher_suites: str
    tls_compression_negotiation_timeout: Number
    tls_trusted_certificates: str
    transport_datagram_max_size: Number
    transport_lbtipc_datagram_max_size: Number
    transport_lbtipc_id_high: Number
    transport_lbtipc_id_low: Number
    transport_lbtipc_pend_behavior_linger_loop_count: Number
    transport_lbtipc_receiver_operational_mode: Literal["embedded", "sequential"]
    transport_lbtipc_receiver_thread_behavior: Literal["pend", "busy_wait"]
    transport_lbtipc_recycle_receive_buffers: Switch
    transport_lbtrdma_datagram_max_size: Number
    transport_lbtrdma_maximum_ports: Number
    transport_lbtrdma_port_high: Number
    transport_lbtrdma_port_low: Number
    transport_lbtrdma_receiver_thread_behavior: Literal["pend", "busy_wait"]
    transport_lbtrm_data_rate_limit: Number
    transport_lbtrm_datagram_max_size: Number
    transport_lbtrm_multicast_address_high: str
    transport_lbtrm_multicast_address_low: str
    transport_lbtrm_rate_interval: Number
    transport_lbtrm_receiver_datagram_max_size: Number
    transport_lbtrm_receiver_socket_buffer: Number
    transport_lbtrm_receiver_timestamp: Switch
    transport_lbtrm_recycle_receive_buffers: Switch
    transport_lbtrm_retransmit_rate_limit: Number
    transport_lbtrm_source_datagram_max_size: Number
    transport_lbtrm_source_port_high: Number
    transport_lbtrm_source_port_low: Number
    transport_lbtrm_source_socket_buffer: Number
    transport_lbtrm_source_timestamp: Switch
    transport_lbtru_data_rate_limit: Number
    transport_lbtru_datagram_max_size: Number
    transport_lbtru_maximum_ports: Number
    transport_lbtru_port_high: Number
    transport_lbtru_port_low: Number
    transport_lbtru_rate_interval: Number
    transport_lbtru_receiver_datagram_max_size: Number
    transport_lbtru_receiver_socket_buffer: Number
    transport_lbtru_recycle_receive_buffers: Switch
    transport_lbtru_retransmit_rate_limit: Number
    transport_lbtru_source_datagram_max_size: Number
    transport_lbtru_source_socket_buffer: Number
    transport_lbtsmx_id_high: Number
    transport_lbtsmx_id_low: Number
    transport_lbtsmx_message_statistics_enabled: Switch
    transport_session_multiple_sending_threads: Switch
    transport_session_single_receiving_thread: Switch
    transport_tcp_datagram_max_size: Number
    transport_tcp_maximum_ports: Number
    transport_tcp_port_high: Number
    transport_tcp_port_low: Number
    transport_tcp_receiver_socket_buffer: Number
    ud_acceleration: Switch
    um_lbtipc_receiver_thread_cpu: Number
    um_lbtsmx_receiver_thread_cpu: Number
    um_lead_maximum: Number
    um_profile: Literal["none", "low_latency"]
    um_tls_peer_names: str
    um_udp_segmentation_offload: Switch
    ume_ack_batching_interval: Number
    ume_proactive_keepalive_interval: Number
    ume_receiver_liveness_interval: Number
    ume_session_id: str
    ume_source_liveness_timeout: Number
    ume_user_receiver_registration_id: Number
    umq_command_interval: Number
    umq_command_outstanding_maximum: Number
    umq_flight_size: Number
    umq_flight_size_behavior: Literal["Block", "Notify"]
    umq_message_retransmission_interval: Number
    umq_message_stability_notification: Switch
    umq_msg_total_lifetime: Number
    umq_queue_activity_timeout: Number
    umq_queue_check_interval: Number
    umq_queue_query_interval: Number
    umq_queue_registration_id: str
    umq_require_queue_authentication: Switch
    umq_retention_intergroup_stability_behavior: Literal["any", "any-group", "majority", "all", "all-groups", "all-active"]
    umq_retention_intragroup_stability_behavior: Literal["quorum", "all", "all-stores", "all-active"]
    umq_session_id: str
    use_tls: Switch


class SourceOptions(TypedDict, total=False):
    """Options of the scope source; see docs/options.md for what each does."""

    implicit_batching_interval: Number
    implicit_batching_minimum_length: Number
    implicit_batching_type: Literal["default", "adaptive"]
    late_join: Switch
    onload_acceleration_stack_name: str
    resolver_advertisement_maximum_initial_interval: Number
    resolver_advertisement_minimum_initial_duration: Number
    resolver_advertisement_minimum_initial_interval: Number
    resolver_advertisement_minimum_sustain_duration: Number
    resolver_advertisement_send_immediate_response: Switch
    resolver_advertisement_sustain_interval: Number
    resolver_send_final_advertisements: Switch
    resolver_send_initial_advertisement: Switch
    retransmit_message_map_tablesz: Number
    retransmit_retention_age_threshold: Number
    retransmit_retention_size_limit: Number
    retransmit_retention_size_threshold: Number
    smart_src_enable_spectrum_channel: Switch
    smart_src_max_message_length: Number
    smart_src_message_property_int_count: Number
    smart_src_retention_buffer_count: Number
    smart_src_user_buffer_count: Number
    transport: Literal["tcp", "lbtrm", "lbt-rm", "lbtru", "lbt-ru", "lbtipc", "lbt-ipc", "lbtsmx", "lbt-smx", "broker", "lbtrdma", "lbt-rdma"]
    transport_lbtipc_behavior: Literal["source_paced", "receiver_paced"]
    transport_lbtipc_client_activity_timeout: Number
    transport_lbtipc_id: Number
    transport_lbtipc_maximum_receivers_per_transport: Number
    transport_lbtipc_sm_interval: Number
    transport_lbtipc_transmission_window_size: Number
    transport_lbtrdma_interface: str
    transport_lbtrdma_port: Number
    transport_lbtrdma_transmission_window_size: Number
    transport_lbtrm_coalesce_threshold: Number
    transport_lbtrm_destination_port: Number
    transport_lbtrm_ignore_interval: Number
    transport_lbtrm_multicast_address: str
    transport_lbtrm_sm_maximum_interval: Number
    transport_lbtrm_sm_minimum_interval: Number
    transport_lbtrm_smart_src_transmission_window_buffer_count: Number
    transport_lbtrm_tgsz: Number
    transport_lbtrm_transmission_window_limit: Number
    transport_lbtrm_transmission_window_size: Number
    transport_lbtru_allow_ephemeral: Switch
    transport_lbtru_client_activity_timeout: Number
    transport_lbtru_client_map_size: Number
    transport_lbtru_coalesce_threshold: Number
    transport_lbtru_ignore_interval: Number
    transport_lbtru_interface: str
    transport_lbtru_port: Number
    transport_lbtru_sm_maximum_interval: Number
    transport_lbtru_sm_minimum_interval: Number
    transport_lbtru_smart_src_transmission_window_buffer_count: Number
    transport_lbtru_transmission_window_limit: Number
    transport_lbtru_transmission_window_size: Number
    transport_lbtru_use_session_id: Switch
    transport_lbtsmx_datagram_max_size: Number
    transport_lbtsmx_id: Number
    transport_lbtsmx_maximum_receivers_per_transport: Number
    transport_lbtsmx_sm_interval: Number
    transport_lbtsmx_transmission_window_size: Number
    transport_session_maximum_buffer: Number
    transport_source_side_filtering_behavior: Literal["none", "inclusion", "ulb"]
    transport_tcp_activity_timeout: Number
    transport_tcp_coalesce_threshold: Number
    transport_tcp_exclusiveaddr: Switch
    transport_tcp_interface: str
    transport_tcp_listen_backlog: Number
    transport_tcp_multiple_receiver_behavior: Literal["normal", "source_paced", "bounded_latency"]
    transport_tcp_multiple_receiver_send_order: Literal["serial", "random"]
    transport_tcp_nodelay: Switch
    transport_tcp_port: Number
    transport_tcp_reuseaddr: Switch
    transport_tcp_sender_socket_buffer: Number
    transport_tcp_use_session_id: Switch
    transport_topic_sequence_number_info_active_threshold: Number
    transport_topic_sequence_number_info_interval: Number
    um_retransmit_retention_message_threshold: Number
    ume_activity_timeout: Number
    ume_confirmed_delivery_notification: Number
    ume_consensus_sequence_number_behavior: Literal["lowest", "majority", "highest"]
    ume_flight_size: Number
    ume_flight_size_behavior: Literal["Block", "Notify"]
    ume_flight_size_bytes: Number
    ume_late_join: Switch
    ume_message_map_tablesz: Number
    ume_message_stability_lifetime: Number
    ume_message_stability_notification: Number
    ume_message_stability_timeout: Number
    ume_primary_store_address: str
    ume_primary_store_port: Number
    ume_proxy_source: Switch
    ume_receiver_paced_persistence: Switch
    ume_registration_id: Number
    ume_registration_interval: Number
    ume_repository_ack_on_reception: Switch
    ume_repository_disk_file_size_limit: Number
    ume_repository_size_limit: Number
    ume_repository_size_threshold: Number
    ume_retention_intergroup_stability_behavior: Literal["any", "any-group", "all-active", "majority", "all", "all-groups"]
    ume_retention_intragroup_stability_behavior: Literal["quorum", "all-active", "all", "all-stores"]
    ume_retention_size_limit: Number
    ume_retention_size_threshold: Number
    ume_retention_unique_confirmations: Number
    ume_secondary_store_address: str
    ume_secondary_store_port: Number
    ume_session_id: str
    ume_sri_flush_sri_request_response: Switch
    ume_sri_immediate_sri_request_response: Switch
    ume_sri_inter_sri_interval: Number
    ume_sri_max_number_of_sri_per_update: Number
    ume_sri_request_response_latency: Number
    ume_state_lifetime: Number
    ume_store: str
    ume_store_activity_timeout: Number
    ume_store_behavior: Literal["qc", "quorum-consensus"]
    ume_store_check_interval: Number
    ume_store_group: str
    ume_store_name: str
    ume_tertiary_store_address: str
    ume_tertiary_store_port: Number
    ume_write_delay: Number
    umq_flight_size: Number
    umq_flight_size_behavior: Literal["Block", "Notify"]
    umq_message_stability_notification: Switch
    umq_msg_total_lifetime: Number
    umq_queue_name: str
    umq_queue_participants_only: Switch
    umq_retention_intergroup_stability_behavior: Literal["any", "any-group", "majority", "all", "all-groups", "all-active"]
    umq_retention_intragroup_stability_behavior: Literal["quorum", "all", "all-stores", "all-active"]
    umq_ulb_application_set: str
    umq_ulb_application_set_assignment_function: str
    umq_ulb_application_set_events: str
    umq_ulb_application_set_load_factor_behavior: str
    umq_ulb_application_set_message_lifetime: str
    umq_ulb_application_set_message_max_reassignments: str
    umq_ulb_application_set_message_reassignment_timeout: str
    umq_ulb_application_set_receiver_activity_timeout: str
    umq_ulb_application_set_receiver_keepalive_interval: str
    umq_ulb_application_set_round_robin_bias: str
    umq_ulb_check_interval: Number
    umq_ulb_events: str
    umq_ulb_flight_size: Number
    umq_ulb_flight_size_behavior: Literal["Block", "Notify"]
    umq_ulb_receiver_events: str
    umq_ulb_receiver_portion: str
    umq_ulb_receiver_priority: str
    use_extended_reclaim_notifications: Switch
    use_hotlink: Switch


class ReceiverOptions(TypedDict, total=False):
    """Options of the scope receiver; see docs/options.md for what each does."""

    channel_map_tablesz: Number
    delivery_control_loss_check_interval: Number
    delivery_control_loss_tablesz: Number
    delivery_control_maximum_burst_loss: Number
    delivery_control_order_tablesz: Number
    hf_duplicate_delivery: Switch
    hf_optional_messages: Switch
    late_join_info_request_interval: Number
    late_join_info_request_maximum: Number
    message_selector: str
    monitor_interval: Number
    null_channel_behavior: Literal["deliver", "discard"]
    onload_acceleration_stack_name: str
    ordered_delivery: Number
    otr_message_caching_threshold: Number
    otr_request_duration: Number
    otr_request_initial_delay: Number
    otr_request_log_alert_cooldown: Number
    otr_request_maximum_interval: Number
    otr_request_message_timeout: Number
    otr_request_minimum_interval: Number
    otr_request_outstanding_maximum: Number
    rcv_sync_cache_timeout: Number
    resolution_no_source_notification_threshold: Number
    resolution_number_of_sources_query_threshold: Number
    resolver_query_maximum_initial_interval: Number
    resolver_query_minimum_initial_duration: Number
    resolver_query_minimum_initial_interval: Number
    resolver_query_minimum_sustain_duration: Number
    resolver_query_sustain_interval: Number
    retransmit_initial_sequence_number_request: Switch
    retransmit_message_caching_proximity: Number
    retransmit_request_generation_interval: Number
    retransmit_request_interval: Number
    retransmit_request_maximum: Number
    retransmit_request_message_timeout: Number
    retransmit_request_outstanding_maximum: Number
    transport_demux_tablesz: Number
    transport_lbtipc_acknowledgement_interval: Number
    transport_lbtipc_activity_timeout: Number
    transport_lbtipc_dro_loss_recovery_timeout: Number
    transport_lbtrm_activity_timeout: Number
    transport_lbtrm_nak_backoff_interval: Number
    transport_lbtrm_nak_generation_interval: Number
    transport_lbtrm_nak_initial_backoff_interval: Number
    transport_lbtrm_nak_suppress_interval: Number
    transport_lbtrm_preactivity_timeout: Number
    transport_lbtrm_send_naks: Switch
    transport_lbtru_acknowledgement_interval: Number
    transport_lbtru_activity_timeout: Number
    transport_lbtru_connect_interval: Number
    transport_lbtru_interface: str
    transport_lbtru_maximum_connect_attempts: Number
    transport_lbtru_nak_backoff_interval: Number
    transport_lbtru_nak_generation_interval: Number
    transport_lbtru_nak_initial_backoff_interval: Number
    transport_lbtru_nak_suppress_interval: Number
    transport_lbtru_port_high: Number
    transport_lbtru_port_low: Number
    transport_lbtru_send_naks: Switch
    transport_lbtsmx_activity_timeout: Number
    transport_tcp_activity_method: Literal["timer", "SO_KEEPALIVE"]
    transport_tcp_activity_timeout: Number
    transport_tcp_dro_loss_recovery_timeout: Number
    transport_tcp_interface: str
    transport_topic_sequence_number_info_request_interval: Number
    transport_topic_sequence_number_info_request_maximum: Number
    um_reassembly_maximum_size: Number
    um_transport_lbtrm_nak_backoff_interval_us: Number
    um_transport_lbtrm_nak_generation_interval_us: Number
    um_transport_lbtrm_nak_initial_backoff_interval_us: Number
    um_transport_lbtrm_nak_suppress_interval_us: Number
    um_transport_lbtru_nak_backoff_interval_us: Number
    um_transport_lbtru_nak_generation_interval_us: Number
    um_transport_lbtru_nak_initial_backoff_interval_us: Number
    um_transport_lbtru_nak_suppress_interval_us: Number
    ume_activity_timeout: Number
    ume_allow_confirmed_delivery: Switch
    ume_application_outstanding_maximum: Number
    ume_consensus_sequence_number_behavior: Literal["lowest", "majority", "highest"]
    ume_explicit_ack_only: Switch
    ume_receiver_paced_persistence: Number
    ume_registration_interval: Number
    ume_retransmit_request_generation_interval: Number
    ume_retransmit_request_interval: Number
    ume_retransmit_request_maximum: Number
    ume_retransmit_request_outstanding_maximum: Number
    ume_session_id: str
    ume_sri_request_interval: Number
    ume_sri_request_maximum: Number
    ume_state_lifetime: Number
    ume_use_ack_batching: Switch
    ume_use_late_join: Switch
    ume_use_store: Switch
    umq_delayed_consumption_report_interval: Number
    umq_hold_interval: Number
    umq_index_assignment_eligibility_default: Literal["Eligible", "Ineligible"]
    umq_queue_participation: Number
    umq_receiver_type_id: Number
    umq_retransmit_request_interval: Number
    umq_retransmit_request_outstanding_maximum: Number
    umq_ulb_source_activity_timeout: Number
    umq_ulb_source_check_interval: Number
    unrecognized_channel_behavior: Literal["deliver", "discard"]
    use_hotlink: Switch
    use_late_join: Switch
    use_otr: Number
    use_transport_thread: Switch


class WildcardReceiverOptions(TypedDict, total=False):
    """Options of the scope wildcard_receiver; see docs/options.md for what each does."""

    hf_receiver: Switch
    monitor_interval: Number
    pattern_type: Literal["pcre", "regex", "appcb"]
    resolver_no_source_linger_timeout: Number
    resolver_query_max_interval: Number
    resolver_query_maximum_interval: Number
    resolver_query_minimum_duration: Number
    resolver_query_minimum_interval: Number


class EventQueueOptions(TypedDict, total=False):
    """Options of the scope event_queue; see docs/options.md for what each does."""

    event_queue_name: str
    monitor_appid: str
    monitor_format: Literal["csv", "pb"]
    monitor_format_opts: str
    monitor_interval: Number
    monitor_transport: Literal["lbm", "lbmsnmp"]
    monitor_transport_opts: str
    queue_age_enabled: Switch
    queue_cancellation_callbacks_enabled: Switch
    queue_count_enabled: Switch
    queue_delay_warning: Number
    queue_enqueue_notification: Switch
    queue_objects_purged_on_close: Switch
    queue_service_time_enabled: Switch
    queue_size_warning: Number


class PatternOptions(ReceiverOptions, total=False):
    """Options of a wildcard receiver and of the receivers it makes."""

    hf_receiver: Switch
    pattern_type: Literal["pcre", "regex", "appcb"]
    resolver_no_source_linger_timeout: Number
    resolver_query_max_interval: Number
    resolver_query_maximum_interval: Number
    resolver_query_minimum_duration: Number
    resolver_query_minimum_interval: Number
