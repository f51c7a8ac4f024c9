"""The options of libum for Python, made by tools/options_py.py from csrc/config/options.def; do not edit."""

# ruff: noqa: E501 - one option on a line

from __future__ import annotations

from typing import Literal, NamedTuple, TypedDict, Union


class Option(NamedTuple):
    """One option of one scope."""

    kind: str
    """How its text is read: NUMBER, SWITCH, ENUM, STRING, ADDRESS, INTERFACE, PORT, ..."""
    default: str
    """The text that sets the default; empty is unset."""
    minimum: int | None
    maximum: int | None
    """Bounds of numbers; None is the range of the C type."""
    values: tuple[str, ...]
    """The names an ENUM takes, or single values and ranges (`0`, `20000..`) beside the bounds."""
    units: str
    live: bool
    """Whether it may be set on an existing object."""
    acts: str
    """yes, not yet or no effect."""


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


OPTIONS: dict[str, dict[str, Option]] = {
    "context": {
        "broker": Option("LIST_BROKER", "", None, None, (), "", False, "not yet"),
        "compatibility_include_pre_um_6_0_behavior": Option("SWITCH", "0", None, None, (), "", False, "not yet"),
        "compression": Option("ENUM", "none", None, None, ("none", "lz4"), "", False, "yes"),
        "context_name": Option("STRING", "", None, None, (), "", False, "yes"),
        "dbl_lbtrm_acceleration": Option("SWITCH", "0", None, None, (), "", False, "no effect"),
        "dbl_lbtru_acceleration": Option("SWITCH", "0", None, None, (), "", False, "no effect"),
        "dbl_mim_acceleration": Option("SWITCH", "0", None, None, (), "", False, "no effect"),
        "dbl_resolver_acceleration": Option("SWITCH", "0", None, None, (), "", False, "no effect"),
        "default_interface": Option("INTERFACE", "0.0.0.0", None, None, (), "", False, "yes"),
        "delivery_control_maximum_total_map_entries": Option("NUMBER", "200000", None, None, (), "map entries", False, "yes"),
        "delivery_control_message_batching": Option("SWITCH", "0", None, None, (), "", False, "not yet"),
        "disable_extended_topic_resolution_message_options": Option("SWITCH", "0", None, None, (), "", False, "yes"),
        "dynamic_fragmentation_reduction": Option("SWITCH", "0", None, None, (), "", False, "yes"),
        "fd_management_type": Option("ENUM", "select", None, None, ("poll", "select", "epoll", "devpoll", "wsaeventselect", "wincompport"), "", False, "no effect"),
        "file_descriptor_management_behavior": Option("ENUM", "pend", None, None, ("pend", "busy_wait"), "", False, "yes"),
        "mim_activity_timeout": Option("NUMBER", "60000", None, None, (), "milliseconds", False, "yes"),
        "mim_address": Option("ADDRESS", "224.10.10.21", None, None, (), "", False, "yes"),
        "mim_delivery_control_activity_check_interval": Option("NUMBER", "5000", None, None, (), "milliseconds", False, "yes"),
        "mim_delivery_control_activity_timeout": Option("NUMBER", "60000", None, None, (), "milliseconds", False, "yes"),
        "mim_delivery_control_loss_check_interval": Option("NUMBER", "0", None, None, (), "milliseconds", False, "yes"),
        "mim_delivery_control_order_tablesz": Option("NUMBER", "1031", None, None, (), "table entries", False, "no effect"),
        "mim_destination_port": Option("PORT", "14401", None, None, (), "", False, "yes"),
        "mim_ignore_interval": Option("NUMBER", "500", None, None, (), "milliseconds", False, "yes"),
        "mim_implicit_batching_interval": Option("NUMBER", "200", None, None, (), "milliseconds", False, "no effect"),
        "mim_implicit_batching_minimum_length": Option("NUMBER", "2048", None, None, (), "bytes", False, "no effect"),
        "mim_incoming_address": Option("ADDRESS", "0.0.0.0", None, None, (), "", False, "yes"),
        "mim_incoming_destination_port": Option("PORT", "14401", None, None, (), "", False, "yes"),
        "mim_nak_backoff_interval": Option("NUMBER", "200", None, None, (), "milliseconds", False, "yes"),
        "mim_nak_generation_interval": Option("NUMBER", "10000", 5, None, (), "milliseconds", False, "yes"),
        "mim_nak_initial_backoff_interval": Option("NUMBER", "50", None, None, (), "milliseconds", False, "yes"),
        "mim_nak_suppress_interval": Option("NUMBER", "1000", None, None, (), "milliseconds", False, "yes"),
        "mim_ordered_delivery": Option("SWITCH", "1", None, None, (), "", False, "yes"),
        "mim_outgoing_address": Option("ADDRESS", "224.10.10.21", None, None, (), "", False, "yes"),
        "mim_outgoing_destination_port": Option("PORT", "14401", None, None, (), "", False, "yes"),
        "mim_send_naks": Option("SWITCH", "1", None, None, (), "", False, "yes"),
        "mim_sm_maximum_interval": Option("NUMBER", "10000", None, None, (), "milliseconds", False, "yes"),
        "mim_sm_minimum_interval": Option("NUMBER", "200", None, None, (), "milliseconds", False, "yes"),
        "mim_sqn_window_increment": Option("NUMBER", "8192", 8, None, ("multiple of 8",), "messages", False, "yes"),
        "mim_sqn_window_size": Option("NUMBER", "16384", 8, None, ("multiple of 8",), "messages", False, "yes"),
        "mim_src_deletion_timeout": Option("NUMBER", "30000", None, None, (), "milliseconds", False, "yes"),
        "mim_tgsz": Option("NUMBER", "8", 1, 32768, ("power of 2",), "packets", False, "yes"),
        "mim_transmission_window_limit": Option("NUMBER", "0", None, None, (), "bytes", False, "yes"),
        "mim_transmission_window_size": Option("NUMBER", "25165824", 65536, None, (), "bytes", False, "yes"),
        "monitor_appid": Option("STRING", "", None, None, (), "", False, "yes"),
        "monitor_format": Option("ENUM", "csv", None, None, ("csv", "pb"), "", False, "yes"),
        "monitor_format_opts": Option("STRING", "", None, None, (), "", False, "yes"),
        "monitor_interval": Option("NUMBER", "0", None, None, (), "seconds", False, "yes"),
        "monitor_transport": Option("ENUM", "lbm", None, None, ("lbm", "lbmsnmp"), "", False, "yes"),
        "monitor_transport_opts": Option("STRING", "", None, None, (), "", False, "yes"),
        "multiple_receive_maximum_datagrams": Option("NUMBER", "0", None, None, (), "datagrams", False, "yes"),
        "network_compatibility_mode": Option("ENUM", "default", None, None, ("default", "0.."), "", False, "no effect"),
        "onload_acceleration_stack_name": Option("STRING", "NULL", None, None, (), "", False, "yes"),
        "operational_mode": Option("ENUM", "embedded", None, None, ("embedded", "sequential"), "", False, "yes"),
        "receive_thread_pool_size": Option("NUMBER", "4", None, None, (), "", False, "no effect"),
        "receiver_callback_service_time_enabled": Option("SWITCH", "0", None, None, (), "", False, "yes"),
        "request_tcp_activity_timeout": Option("NUMBER", "0", 0, None, ("0", "20000.."), "milliseconds", False, "yes"),
        "request_tcp_bind_request_port": Option("SWITCH", "1", None, None, (), "", False, "yes"),
        "request_tcp_exclusiveaddr": Option("SWITCH", "0", None, None, (), "", False, "no effect"),
        "request_tcp_interface": Option("INTERFACE", "0.0.0.0", None, None, (), "", False, "yes"),
        "request_tcp_listen_backlog": Option("NUMBER", "5", None, None, (), "", False, "yes"),
        "request_tcp_port": Option("PORT", "0", None, None, (), "", False, "yes"),
        "request_tcp_port_high": Option("PORT", "14395", None, None, (), "", False, "yes"),
        "request_tcp_port_low": Option("PORT", "14391", None, None, (), "", False, "yes"),
        "request_tcp_reuseaddr": Option("SWITCH", "0", None, None, (), "", False, "yes"),
        "resolver_active_source_interval": Option("NUMBER", "1000", None, None, (), "milliseconds", True, "no effect"),
        "resolver_active_threshold": Option("NUMBER", "60", None, None, (), "seconds", True, "no effect"),
        "resolver_cache": Option("SWITCH", "1", None, None, (), "", False, "yes"),
        "resolver_context_advertisement_interval": Option("NUMBER", "10000", None, None, (), "milliseconds", False, "no effect"),
        "resolver_context_name_activity_timeout": Option("NUMBER", "60000", None, None, (), "milliseconds", False, "not yet"),
        "resolver_context_name_query_duration": Option("NUMBER", "0", None, None, (), "milliseconds", False, "not yet"),
        "resolver_context_name_query_maximum_interval": Option("NUMBER", "1000", 0, None, (), "milliseconds", False, "not yet"),
        "resolver_context_name_query_minimum_interval": Option("NUMBER", "100", 0, None, (), "milliseconds", False, "not yet"),
        "resolver_datagram_max_size": Option("NUMBER", "8192", 500, 65535, (), "bytes", False, "yes"),
        "resolver_disable_udp_topic_resolution": Option("SWITCH", "0", None, None, (), "", False, "yes"),
        "resolver_domain_id_active_propagation_timeout": Option("NUMBER", "0", -1, 2147483647, (), "", False, "yes"),
        "resolver_initial_advertisement_bps": Option("NUMBER", "1000000", None, None, (), "bits per second", False, "yes"),
        "resolver_initial_advertisements_per_second": Option("NUMBER", "1000", None, None, (), "advertisements", False, "yes"),
        "resolver_initial_queries_per_second": Option("NUMBER", "1000", None, None, (), "advertisements", False, "yes"),
        "resolver_initial_query_bps": Option("NUMBER", "1000000", None, None, (), "bits per second", False, "yes"),
        "resolver_maximum_advertisements": Option("NUMBER", "0", None, None, (), "topics", True, "no effect"),
        "resolver_maximum_queries": Option("NUMBER", "0", None, None, (), "topics", True, "no effect"),
        "resolver_multicast_address": Option("ADDRESS", "224.9.10.11", None, None, (), "", False, "yes"),
        "resolver_multicast_incoming_address": Option("ADDRESS", "224.9.10.11", None, None, (), "", False, "yes"),
        "resolver_multicast_incoming_port": Option("PORT", "12965", None, None, (), "", False, "yes"),
        "resolver_multicast_interface": Option("INTERFACE", "0.0.0.0", None, None, (), "", False, "yes"),
        "resolver_multicast_outgoing_address": Option("ADDRESS", "224.9.10.11", None, None, (), "", False, "yes"),
        "resolver_multicast_outgoing_port": Option("PORT", "12965", None, None, (), "", False, "yes"),
        "resolver_multicast_port": Option("PORT", "12965", None, None, (), "", False, "yes"),
        "resolver_multicast_receiver_socket_buffer": Option("NUMBER", "8388608", None, None, (), "bytes", False, "yes"),
        "resolver_multicast_ttl": Option("NUMBER", "16", 0, 255, (), "", False, "yes"),
        "resolver_query_interval": Option("NUMBER", "100", None, None, (), "milliseconds", True, "no effect"),
        "resolver_receiver_datagram_max_size": Option("NUMBER", "0", 0, 65535, ("0", "500..65535"), "bytes", False, "yes"),
        "resolver_receiver_map_tablesz": Option("NUMBER", "131111", None, None, (), "map entries", False, "no effect"),
        "resolver_service": Option("LIST_SERVICE", "", None, None, (), "", False, "yes"),
        "resolver_service_interest_mode": Option("ENUM", "filter", None, None, ("filter", "flood"), "", False, "yes"),
        "resolver_source_datagram_max_size": Option("NUMBER", "0", 0, 65535, ("0", "500..65535"), "bytes", False, "yes"),
        "resolver_source_map_tablesz": Option("NUMBER", "131111", None, None, (), "map entries", False, "no effect"),
        "resolver_string_hash_function": Option("HASH", "murmur2", None, None, (), "", False, "yes"),
        "resolver_sustain_advertisement_bps": Option("NUMBER", "1000000", None, None, (), "bits per second", False, "yes"),
        "resolver_sustain_advertisements_per_second": Option("NUMBER", "0", None, None, (), "advertisements", False, "yes"),
        "resolver_sustain_queries_per_second": Option("NUMBER", "0", None, None, (), "advertisements", False, "yes"),
        "resolver_sustain_query_bps": Option("NUMBER", "1000000", None, None, (), "bits per second", False, "yes"),
        "resolver_ud_acceleration": Option("SWITCH", "0", None, None, (), "", False, "no effect"),
        "resolver_unicast_activity_timeout": Option("NUMBER", "1000", None, None, (), "milliseconds", False, "yes"),
        "resolver_unicast_address": Option("ADDRESS", "0.0.0.0", None, None, (), "", False, "yes"),
        "resolver_unicast_change_interval": Option("NUMBER", "200", None, None, (), "milliseconds", False, "yes"),
        "resolver_unicast_check_interval": Option("NUMBER", "200", None, None, (), "milliseconds", False, "yes"),
        "resolver_unicast_daemon": Option("LIST_DAEMON", "", None, None, (), "", False, "yes"),
        "resolver_unicast_destination_port": Option("PORT", "15380", None, None, (), "", False, "yes"),
        "resolver_unicast_force_alive": Option("SWITCH", "0", None, None, (), "", False, "yes"),
        "resolver_unicast_ignore_unknown_source": Option("SWITCH", "1", None, None, (), "", False, "yes"),
        "resolver_unicast_interface": Option("INTERFACE", "0.0.0.0", None, None, (), "", False, "yes"),
        "resolver_unicast_keepalive_interval": Option("NUMBER", "500", None, None, (), "milliseconds", False, "yes"),
        "resolver_unicast_port": Option("PORT", "0", None, None, (), "", False, "yes"),
        "resolver_unicast_port_high": Option("PORT", "14406", None, None, (), "", False, "yes"),
        "resolver_unicast_port_low": Option("PORT", "14402", None, None, (), "", False, "yes"),
        "resolver_unicast_receiver_socket_buffer": Option("NUMBER", "8388608", None, None, (), "bytes", False, "yes"),
        "resolver_wildcard_queries_per_second": Option("NUMBER", "0", None, None, (), "advertisements", False, "yes"),
        "resolver_wildcard_query_bps": Option("NUMBER", "1000000", None, None, (), "bits per second", False, "yes"),
        "resolver_wildcard_receiver_map_tablesz": Option("NUMBER", "10273", None, None, (), "map entries", False, "no effect"),
        "response_session_maximum_buffer": Option("NUMBER", "65536", None, None, (), "bytes", False, "yes"),
        "response_session_sender_socket_buffer": Option("NUMBER", "0", None, None, (), "bytes", False, "yes"),
        "response_tcp_activity_timeout": Option("NUMBER", "-1", -1, None, ("-1", "0", "20000.."), "milliseconds", False, "yes"),
        "response_tcp_deletion_timeout": Option("NUMBER", "20000", None, None, (), "milliseconds", False, "yes"),
        "response_tcp_interface": Option("INTERFACE", "0.0.0.0", None, None, (), "", False, "yes"),
        "response_tcp_nodelay": Option("SWITCH", "0", None, None, (), "", False, "yes"),
        "source_includes_topic_index": Option("SWITCH", "1", None, None, (), "", False, "yes"),
        "tls_certificate": Option("STRING", "NULL", None, None, (), "", False, "yes"),
        "tls_certificate_key": Option("STRING", "NULL", None, None, (), "", False, "yes"),
        "tls_certificate_key_password": Option("STRING", "NULL", None, None, (), "", False, "yes"),
        "tls_cipher_suites": Option("STRING", "DHE-RSA-AES256-GCM-SHA384", None, None, (), "", False, "yes"),
        "tls_compression_negotiation_timeout": Option("NUMBER", "5000", None, None, (), "milliseconds", False, "yes"),
        "tls_trusted_certificates": Option("STRING", "NULL", None, None, (), "", False, "yes"),
        "transport_datagram_max_size": Option("NUMBER", "8192", 400, 65535, (), "bytes", False, "no effect"),
        "transport_lbtipc_datagram_max_size": Option("NUMBER", "65535", 500, 65535, (), "bytes", False, "yes"),
        "transport_lbtipc_id_high": Option("NUMBER", "20005", None, None, (), "", False, "yes"),
        "transport_lbtipc_id_low": Option("NUMBER", "20001", None, None, (), "", False, "yes"),
        "transport_lbtipc_pend_behavior_linger_loop_count": Option("NUMBER", "1", None, None, (), "", False, "yes"),
        "transport_lbtipc_receiver_operational_mode": Option("ENUM", "embedded", None, None, ("embedded", "sequential"), "", False, "yes"),
        "transport_lbtipc_receiver_thread_behavior": Option("ENUM", "pend", None, None, ("pend", "busy_wait"), "", False, "yes"),
        "transport_lbtipc_recycle_receive_buffers": Option("SWITCH", "0", None, None, (), "", False, "yes"),
        "transport_lbtrdma_datagram_max_size": Option("NUMBER", "4096", 500, 4096, (), "bytes", False, "no effect"),
        "transport_lbtrdma_maximum_ports": Option("NUMBER", "5", None, None, (), "ports", False, "no effect"),
        "transport_lbtrdma_port_high": Option("PORT", "20020", None, None, (), "", False, "no effect"),
        "transport_lbtrdma_port_low": Option("PORT", "20001", None, None, (), "", False, "no effect"),
        "transport_lbtrdma_receiver_thread_behavior": Option("ENUM", "pend", None, None, ("pend", "busy_wait"), "", False, "no effect"),
        "transport_lbtrm_data_rate_limit": Option("RATE", "10000000", None, None, (), "bits per second", False, "yes"),
        "transport_lbtrm_datagram_max_size": Option("NUMBER", "8192", 500, 65535, (), "bytes", False, "yes"),
        "transport_lbtrm_multicast_address_high": Option("ADDRESS", "224.10.10.14", None, None, (), "", False, "yes"),
        "transport_lbtrm_multicast_address_low": Option("ADDRESS", "224.10.10.10", None, None, (), "", False, "yes"),
        "transport_lbtrm_rate_interval": Option("NUMBER", "10", None, None, ("5", "10", "20", "50", "100"), "milliseconds", False, "yes"),
        "transport_lbtrm_receiver_datagram_max_size": Option("NUMBER", "0", 0, 65535, ("0", "500..65535"), "bytes", False, "yes"),
        "transport_lbtrm_receiver_socket_buffer": Option("NUMBER", "8388608", None, None, (), "bytes", False, "yes"),
        "transport_lbtrm_receiver_timestamp": Option("SWITCH", "0", None, None, (), "", False, "yes"),
        "transport_lbtrm_recycle_receive_buffers": Option("SWITCH", "0", None, None, (), "", False, "no effect"),
        "transport_lbtrm_retransmit_rate_limit": Option("RATE", "5000000", None, None, (), "bits per second", False, "yes"),
        "transport_lbtrm_source_datagram_max_size": Option("NUMBER", "0", 0, 65535, ("0", "500..65535"), "bytes", False, "yes"),
        "transport_lbtrm_source_port_high": Option("PORT", "14399", None, None, (), "", False, "yes"),
        "transport_lbtrm_source_port_low": Option("PORT", "14390", None, None, (), "", False, "yes"),
        "transport_lbtrm_source_socket_buffer": Option("NUMBER", "1048576", None, None, (), "bytes", False, "yes"),
        "transport_lbtrm_source_timestamp": Option("SWITCH", "0", None, None, (), "", False, "yes"),
        "transport_lbtru_data_rate_limit": Option("RATE", "10000000", None, None, (), "bits per second", False, "yes"),
        "transport_lbtru_datagram_max_size": Option("NUMBER", "8192", 500, 65535, (), "bytes", False, "yes"),
        "transport_lbtru_maximum_ports": Option("NUMBER", "5", None, None, (), "ports", False, "yes"),
        "transport_lbtru_port_high": Option("PORT", "14389", None, None, (), "", False, "yes"),
        "transport_lbtru_port_low": Option("PORT", "14380", None, None, (), "", False, "yes"),
        "transport_lbtru_rate_interval": Option("NUMBER", "100", None, None, ("5", "10", "20", "50", "100"), "milliseconds", False, "yes"),
        "transport_lbtru_receiver_datagram_max_size": Option("NUMBER", "0", 0, 65535, ("0", "500..65535"), "bytes", False, "yes"),
        "transport_lbtru_receiver_socket_buffer": Option("NUMBER", "8388608", None, None, (), "bytes", False, "yes"),
        "transport_lbtru_recycle_receive_buffers": Option("SWITCH", "0", None, None, (), "", False, "no effect"),
        "transport_lbtru_retransmit_rate_limit": Option("RATE", "5000000", None, None, (), "bits per second", False, "yes"),
        "transport_lbtru_source_datagram_max_size": Option("NUMBER", "0", 0, 65535, ("0", "500..65535"), "bytes", False, "yes"),
        "transport_lbtru_source_socket_buffer": Option("NUMBER", "1048576", None, None, (), "bytes", False, "yes"),
        "transport_lbtsmx_id_high": Option("NUMBER", "30005", 1, 65535, (), "", False, "yes"),
        "transport_lbtsmx_id_low": Option("NUMBER", "30001", 1, 65535, (), "", False, "yes"),
        "transport_lbtsmx_message_statistics_enabled": Option("SWITCH", "0", None, None, (), "", False, "yes"),
        "transport_session_multiple_sending_threads": Option("SWITCH", "1", None, None, (), "", False, "no effect"),
        "transport_session_single_receiving_thread": Option("SWITCH", "0", None, None, (), "", False, "no effect"),
        "transport_tcp_datagram_max_size": Option("NUMBER", "65535", 500, 65535, (), "bytes", False, "yes"),
        "transport_tcp_maximum_ports": Option("NUMBER", "10", None, None, (), "ports", False, "yes"),
        "transport_tcp_port_high": Option("PORT", "14390", None, None, (), "", False, "yes"),
        "transport_tcp_port_low": Option("PORT", "14371", None, None, (), "", False, "yes"),
        "transport_tcp_receiver_socket_buffer": Option("NUMBER", "0", None, None, (), "bytes", False, "yes"),
        "ud_acceleration": Option("SWITCH", "0", None, None, (), "", False, "no effect"),
        "um_lbtipc_receiver_thread_cpu": Option("NUMBER", "-1", -1, 4095, (), "", False, "yes"),
        "um_lbtsmx_receiver_thread_cpu": Option("NUMBER", "-1", -1, 4095, (), "", False, "yes"),
        "um_lead_maximum": Option("NUMBER", "1048576", 1, 1073741823, (), "datagrams", False, "yes"),
        "um_profile": Option("ENUM", "none", None, None, ("none", "low_latency"), "", False, "yes"),
        "um_tls_peer_names": Option("STRING", "NULL", None, None, (), "", False, "yes"),
        "um_udp_segmentation_offload": Option("SWITCH", "1", None, None, (), "", False, "yes"),
        "ume_ack_batching_interval": Option("NUMBER", "100", None, None, (), "milliseconds", False, "not yet"),
        "ume_proactive_keepalive_interval": Option("NUMBER", "3000", 0, None, ("0", "1500.."), "milliseconds", False, "not yet"),
        "ume_receiver_liveness_interval": Option("NUMBER", "0", None, None, (), "milliseconds", False, "not yet"),
        "ume_session_id": Option("SESSION_ID", "0", 0, None, (), "", False, "not yet"),
        "ume_source_liveness_timeout": Option("NUMBER", "0", None, None, (), "milliseconds", False, "not yet"),
        "ume_user_receiver_registration_id": Option("NUMBER", "0", None, None, (), "identifier", False, "not yet"),
        "umq_command_interval": Option("NUMBER", "500", None, None, (), "milliseconds", False, "not yet"),
        "umq_command_outstanding_maximum": Option("NUMBER", "1000", 1, None, (), "commands", False, "not yet"),
        "umq_flight_size": Option("NUMBER", "1000", None, None, (), "messages", False, "no effect"),
        "umq_flight_size_behavior": Option("ENUM", "Block", None, None, ("Block", "Notify"), "", False, "no effect"),
        "umq_message_retransmission_interval": Option("NUMBER", "500", None, None, (), "milliseconds", False, "no effect"),
        "umq_message_stability_notification": Option("SWITCH", "1", None, None, (), "", False, "no effect"),
        "umq_msg_total_lifetime": Option("NUMBER", "0", None, None, (), "milliseconds", False, "no effect"),
        "umq_queue_activity_timeout": Option("NUMBER", "3000", None, None, (), "milliseconds", False, "not yet"),
        "umq_queue_check_interval": Option("NUMBER", "500", None, None, (), "milliseconds", False, "no effect"),
        "umq_queue_query_interval": Option("NUMBER", "200", None, None, (), "milliseconds", False, "no effect"),
        "umq_queue_registration_id": Option("LIST_QUEUE", "", None, None, (), "", False, "not yet"),
        "umq_require_queue_authentication": Option("SWITCH", "1", None, None, (), "", False, "no effect"),
        "umq_retention_intergroup_stability_behavior": Option("ENUM", "any", None, None, ("any", "any-group", "majority", "all", "all-groups", "all-active"), "", False, "no effect"),
        "umq_retention_intragroup_stability_behavior": Option("ENUM", "quorum", None, None, ("quorum", "all", "all-stores", "all-active"), "", False, "no effect"),
        "umq_session_id": Option("SESSION_ID", "0", 0, None, (), "", False, "not yet"),
        "use_tls": Option("SWITCH", "0", None, None, (), "", False, "yes"),
    },
    "source": {
        "implicit_batching_interval": Option("NUMBER", "200", None, None, (), "milliseconds", True, "yes"),
        "implicit_batching_minimum_length": Option("NUMBER", "2048", None, None, (), "bytes", True, "yes"),
        "implicit_batching_type": Option("ENUM", "default", None, None, ("default", "adaptive"), "", True, "yes"),
        "late_join": Option("SWITCH", "0", None, None, (), "", False, "yes"),
        "onload_acceleration_stack_name": Option("STRING", "NULL", None, None, (), "", False, "yes"),
        "resolver_advertisement_maximum_initial_interval": Option("NUMBER", "500", 0, None, (), "milliseconds", False, "yes"),
        "resolver_advertisement_minimum_initial_duration": Option("NUMBER", "5000", None, None, (), "milliseconds", False, "yes"),
        "resolver_advertisement_minimum_initial_interval": Option("NUMBER", "10", 0, None, (), "milliseconds", False, "yes"),
        "resolver_advertisement_minimum_sustain_duration": Option("NUMBER", "60", None, None, (), "seconds", False, "yes"),
        "resolver_advertisement_send_immediate_response": Option("SWITCH", "1", None, None, (), "", False, "yes"),
        "resolver_advertisement_sustain_interval": Option("NUMBER", "1000", 0, None, (), "milliseconds", False, "yes"),
        "resolver_send_final_advertisements": Option("SWITCH", "0", None, None, (), "", False, "yes"),
        "resolver_send_initial_advertisement": Option("SWITCH", "1", None, None, (), "", False, "yes"),
        "retransmit_message_map_tablesz": Option("NUMBER", "131", None, None, (), "", False, "no effect"),
        "retransmit_retention_age_threshold": Option("NUMBER", "0", None, None, (), "seconds", False, "yes"),
        "retransmit_retention_size_limit": Option("NUMBER", "25165824", None, None, (), "bytes", False, "yes"),
        "retransmit_retention_size_threshold": Option("NUMBER", "0", None, None, (), "bytes", False, "yes"),
        "smart_src_enable_spectrum_channel": Option("SWITCH", "0", None, None, (), "", False, "yes"),
        "smart_src_max_message_length": Option("NUMBER", "368", None, None, (), "bytes", False, "yes"),
        "smart_src_message_property_int_count": Option("NUMBER", "0", 0, None, (), "32-bit integer properties", False, "yes"),
        "smart_src_retention_buffer_count": Option("NUMBER", "1024", 1, None, (), "buffers", False, "yes"),
        "smart_src_user_buffer_count": Option("NUMBER", "32", 1, None, (), "buffers", False, "yes"),
        "transport": Option("ENUM", "tcp", None, None, ("tcp", "lbtrm", "lbt-rm", "lbtru", "lbt-ru", "lbtipc", "lbt-ipc", "lbtsmx", "lbt-smx", "broker", "lbtrdma", "lbt-rdma"), "", False, "yes"),
        "transport_lbtipc_behavior": Option("ENUM", "source_paced", None, None, ("source_paced", "receiver_paced"), "", False, "yes"),
        "transport_lbtipc_client_activity_timeout": Option("NUMBER", "10000", None, None, (), "milliseconds", False, "no effect"),
        "transport_lbtipc_id": Option("NUMBER", "0", None, None, (), "", False, "yes"),
        "transport_lbtipc_maximum_receivers_per_transport": Option("NUMBER", "20", None, None, (), "", False, "yes"),
        "transport_lbtipc_sm_interval": Option("NUMBER", "10000", None, None, (), "milliseconds", False, "yes"),
        "transport_lbtipc_transmission_window_size": Option("NUMBER", "25165824", 65536, None, (), "bytes", False, "yes"),
        "transport_lbtrdma_interface": Option("INTERFACE", "0.0.0.0", None, None, (), "", False, "no effect"),
        "transport_lbtrdma_port": Option("PORT", "0", None, None, (), "", False, "no effect"),
        "transport_lbtrdma_transmission_window_size": Option("NUMBER", "25165824", 65536, None, (), "bytes", False, "no effect"),
        "transport_lbtrm_coalesce_threshold": Option("NUMBER", "15", None, 1023, (), "messages", False, "no effect"),
        "transport_lbtrm_destination_port": Option("PORT", "14400", None, None, (), "", False, "yes"),
        "transport_lbtrm_ignore_interval": Option("NUMBER", "500", None, None, (), "milliseconds", False, "yes"),
        "transport_lbtrm_multicast_address": Option("ADDRESS", "0.0.0.0", None, None, (), "", False, "yes"),
        "transport_lbtrm_sm_maximum_interval": Option("NUMBER", "10000", None, None, (), "milliseconds", False, "yes"),
        "transport_lbtrm_sm_minimum_interval": Option("NUMBER", "200", None, None, (), "milliseconds", False, "yes"),
        "transport_lbtrm_smart_src_transmission_window_buffer_count": Option("NUMBER", "16384", 1, None, (), "buffers", False, "yes"),
        "transport_lbtrm_tgsz": Option("NUMBER", "8", 1, 32768, ("power of 2",), "packets", False, "yes"),
        "transport_lbtrm_transmission_window_limit": Option("NUMBER", "0", None, None, (), "bytes", False, "yes"),
        "transport_lbtrm_transmission_window_size": Option("NUMBER", "25165824", 65536, None, (), "bytes", False, "yes"),
        "transport_lbtru_allow_ephemeral": Option("SWITCH", "0", 0, None, (), "", False, "yes"),
        "transport_lbtru_client_activity_timeout": Option("NUMBER", "10000", None, None, (), "milliseconds", False, "yes"),
        "transport_lbtru_client_map_size": Option("NUMBER", "7", None, None, (), "table entries", False, "yes"),
        "transport_lbtru_coalesce_threshold": Option("NUMBER", "15", None, 1023, (), "messages", False, "no effect"),
        "transport_lbtru_ignore_interval": Option("NUMBER", "500", None, None, (), "milliseconds", False, "yes"),
        "transport_lbtru_interface": Option("INTERFACE", "0.0.0.0", None, None, (), "", False, "yes"),
        "transport_lbtru_port": Option("PORT", "0", None, None, (), "", False, "yes"),
        "transport_lbtru_sm_maximum_interval": Option("NUMBER", "10000", None, None, (), "milliseconds", False, "yes"),
        "transport_lbtru_sm_minimum_interval": Option("NUMBER", "200", None, None, (), "milliseconds", False, "yes"),
        "transport_lbtru_smart_src_transmission_window_buffer_count": Option("NUMBER", "16384", 1, None, (), "buffers", False, "yes"),
        "transport_lbtru_transmission_window_limit": Option("NUMBER", "0", None, None, (), "bytes", False, "yes"),
        "transport_lbtru_transmission_window_size": Option("NUMBER", "25165824", 65536, None, (), "bytes", False, "yes"),
        "transport_lbtru_use_session_id": Option("SWITCH", "1", None, None, (), "", False, "yes"),
        "transport_lbtsmx_datagram_max_size": Option("NUMBER", "8192", 32, None, (), "bytes", False, "yes"),
        "transport_lbtsmx_id": Option("NUMBER", "0", None, None, (), "", False, "yes"),
        "transport_lbtsmx_maximum_receivers_per_transport": Option("NUMBER", "64", None, None, (), "", False, "yes"),
        "transport_lbtsmx_sm_interval": Option("NUMBER", "10000", None, None, (), "milliseconds", False, "yes"),
        "transport_lbtsmx_transmission_window_size": Option("ENUM", "131072", 64, None, (), "bytes", False, "yes"),
        "transport_session_maximum_buffer": Option("NUMBER", "65536", None, None, (), "bytes", False, "yes"),
        "transport_source_side_filtering_behavior": Option("ENUM", "none", None, None, ("none", "inclusion", "ulb"), "", False, "yes"),
        "transport_tcp_activity_timeout": Option("NUMBER", "0", 0, None, ("0", "20000.."), "milliseconds", False, "yes"),
        "transport_tcp_coalesce_threshold": Option("NUMBER", "1024", None, 1024, (), "messages", False, "no effect"),
        "transport_tcp_exclusiveaddr": Option("SWITCH", "0", None, None, (), "", False, "no effect"),
        "transport_tcp_interface": Option("INTERFACE", "0.0.0.0", None, None, (), "", False, "yes"),
        "transport_tcp_listen_backlog": Option("NUMBER", "5", None, None, (), "connections", False, "yes"),
        "transport_tcp_multiple_receiver_behavior": Option("ENUM", "normal", None, None, ("normal", "source_paced", "bounded_latency"), "", False, "yes"),
        "transport_tcp_multiple_receiver_send_order": Option("ENUM", "serial", None, None, ("serial", "random"), "", False, "yes"),
        "transport_tcp_nodelay": Option("SWITCH", "1", None, None, (), "", False, "yes"),
        "transport_tcp_port": Option("PORT", "0", None, None, (), "", False, "yes"),
        "transport_tcp_reuseaddr": Option("SWITCH", "0", None, None, (), "", False, "yes"),
        "transport_tcp_sender_socket_buffer": Option("NUMBER", "0", None, None, (), "bytes", False, "yes"),
        "transport_tcp_use_session_id": Option("SWITCH", "1", None, None, (), "", False, "yes"),
        "transport_topic_sequence_number_info_active_threshold": Option("NUMBER", "60", None, None, (), "seconds", False, "yes"),
        "transport_topic_sequence_number_info_interval": Option("NUMBER", "5000", None, None, (), "milliseconds", False, "yes"),
        "um_retransmit_retention_message_threshold": Option("NUMBER", "0", None, None, (), "messages", False, "yes"),
        "ume_activity_timeout": Option("NUMBER", "0", None, None, (), "milliseconds", False, "not yet"),
        "ume_confirmed_delivery_notification": Option("NUMBER", "0", None, None, ("0", "1", "2", "3"), "", False, "not yet"),
        "ume_consensus_sequence_number_behavior": Option("ENUM", "highest", None, None, ("lowest", "majority", "highest"), "", False, "not yet"),
        "ume_flight_size": Option("NUMBER", "1000", None, None, (), "messages", False, "not yet"),
        "ume_flight_size_behavior": Option("ENUM", "Block", None, None, ("Block", "Notify"), "", False, "not yet"),
        "ume_flight_size_bytes": Option("NUMBER", "0", None, None, (), "bytes", False, "not yet"),
        "ume_late_join": Option("SWITCH", "0", None, None, (), "", False, "yes"),
        "ume_message_map_tablesz": Option("NUMBER", "131", None, None, (), "", False, "no effect"),
        "ume_message_stability_lifetime": Option("NUMBER", "1200000", None, None, (), "milliseconds", False, "not yet"),
        "ume_message_stability_notification": Option("NUMBER", "1", None, None, ("0", "1", "2", "3"), "", False, "not yet"),
        "ume_message_stability_timeout": Option("NUMBER", "5000", None, None, (), "milliseconds", False, "not yet"),
        "ume_primary_store_address": Option("ADDRESS", "0.0.0.0", None, None, (), "", False, "no effect"),
        "ume_primary_store_port": Option("PORT", "14567", None, None, (), "", False, "no effect"),
        "ume_proxy_source": Option("SWITCH", "0", None, None, (), "", False, "not yet"),
        "ume_receiver_paced_persistence": Option("SWITCH", "0", None, None, (), "", False, "not yet"),
        "ume_registration_id": Option("NUMBER", "0", None, None, (), "identifier", False, "no effect"),
        "ume_registration_interval": Option("NUMBER", "3000", None, None, (), "milliseconds", False, "not yet"),
        "ume_repository_ack_on_reception": Option("SWITCH", "0", None, None, (), "", False, "not yet"),
        "ume_repository_disk_file_size_limit": Option("NUMBER", "0", None, None, (), "bytes", False, "not yet"),
        "ume_repository_size_limit": Option("NUMBER", "0", None, None, (), "bytes", False, "not yet"),
        "ume_repository_size_threshold": Option("NUMBER", "0", None, None, (), "bytes", False, "not yet"),
        "ume_retention_intergroup_stability_behavior": Option("ENUM", "any", None, None, ("any", "any-group", "all-active", "majority", "all", "all-groups"), "", False, "not yet"),
        "ume_retention_intragroup_stability_behavior": Option("ENUM", "quorum", None, None, ("quorum", "all-active", "all", "all-stores"), "", False, "not yet"),
        "ume_retention_size_limit": Option("NUMBER", "25165824", None, None, (), "bytes", False, "yes"),
        "ume_retention_size_threshold": Option("NUMBER", "0", None, None, (), "bytes", False, "yes"),
        "ume_retention_unique_confirmations": Option("NUMBER", "0", None, None, (), "confirmations", False, "not yet"),
        "ume_secondary_store_address": Option("ADDRESS", "0.0.0.0", None, None, (), "", False, "no effect"),
        "ume_secondary_store_port": Option("PORT", "14567", None, None, (), "", False, "no effect"),
        "ume_session_id": Option("SESSION_ID", "0", 0, None, (), "", False, "not yet"),
        "ume_sri_flush_sri_request_response": Option("SWITCH", "0", None, None, (), "", False, "not yet"),
        "ume_sri_immediate_sri_request_response": Option("SWITCH", "1", None, None, (), "", False, "not yet"),
        "ume_sri_inter_sri_interval": Option("NUMBER", "500", 1, None, (), "milliseconds", False, "not yet"),
        "ume_sri_max_number_of_sri_per_update": Option("NUMBER", "20", None, None, (), "", False, "not yet"),
        "ume_sri_request_response_latency": Option("NUMBER", "100", None, None, (), "milliseconds", False, "not yet"),
        "ume_state_lifetime": Option("NUMBER", "0", None, None, (), "milliseconds", False, "not yet"),
        "ume_store": Option("LIST_STORE", "", None, None, (), "", False, "not yet"),
        "ume_store_activity_timeout": Option("NUMBER", "10000", None, None, (), "milliseconds", False, "not yet"),
        "ume_store_behavior": Option("ENUM", "qc", None, None, ("qc", "quorum-consensus"), "", False, "not yet"),
        "ume_store_check_interval": Option("NUMBER", "500", None, None, (), "milliseconds", False, "not yet"),
        "ume_store_group": Option("LIST_STORE_GROUP", "", None, None, (), "", False, "not yet"),
        "ume_store_name": Option("LIST_STORE_NAME", "", None, None, (), "", False, "not yet"),
        "ume_tertiary_store_address": Option("ADDRESS", "0.0.0.0", None, None, (), "", False, "no effect"),
        "ume_tertiary_store_port": Option("PORT", "14567", None, None, (), "", False, "no effect"),
        "ume_write_delay": Option("NUMBER", "0", None, None, (), "milliseconds", False, "not yet"),
        "umq_flight_size": Option("NUMBER", "1000", None, None, (), "messages", False, "no effect"),
        "umq_flight_size_behavior": Option("ENUM", "Block", None, None, ("Block", "Notify"), "", False, "no effect"),
        "umq_message_stability_notification": Option("SWITCH", "1", None, None, (), "", False, "not yet"),
        "umq_msg_total_lifetime": Option("NUMBER", "0", None, None, (), "milliseconds", False, "not yet"),
        "umq_queue_name": Option("STRING", "", None, None, (), "", False, "no effect"),
        "umq_queue_participants_only": Option("SWITCH", "0", None, None, (), "", False, "no effect"),
        "umq_retention_intergroup_stability_behavior": Option("ENUM", "any", None, None, ("any", "any-group", "majority", "all", "all-groups", "all-active"), "", False, "no effect"),
        "umq_retention_intragroup_stability_behavior": Option("ENUM", "quorum", None, None, ("quorum", "all", "all-stores", "all-active"), "", False, "no effect"),
        "umq_ulb_application_set": Option("LIST_ULB_SET", "", None, None, (), "", False, "not yet"),
        "umq_ulb_application_set_assignment_function": Option("LIST_ULB_SET_VALUE", "default", None, None, (), "", False, "not yet"),
        "umq_ulb_application_set_events": Option("LIST_ULB_SET_VALUE", "", None, None, (), "", False, "not yet"),
        "umq_ulb_application_set_load_factor_behavior": Option("LIST_ULB_SET_VALUE", "ignored", None, None, (), "", False, "not yet"),
        "umq_ulb_application_set_message_lifetime": Option("LIST_ULB_SET_VALUE", "", None, None, (), "", False, "not yet"),
        "umq_ulb_application_set_message_max_reassignments": Option("LIST_ULB_SET_VALUE", "", None, None, (), "", False, "not yet"),
        "umq_ulb_application_set_message_reassignment_timeout": Option("LIST_ULB_SET_VALUE", "", None, None, (), "", False, "not yet"),
        "umq_ulb_application_set_receiver_activity_timeout": Option("LIST_ULB_SET_VALUE", "", None, None, (), "", False, "not yet"),
        "umq_ulb_application_set_receiver_keepalive_interval": Option("LIST_ULB_SET_VALUE", "", None, None, (), "", False, "not yet"),
        "umq_ulb_application_set_round_robin_bias": Option("LIST_ULB_SET_VALUE", "1", None, None, (), "", False, "not yet"),
        "umq_ulb_check_interval": Option("NUMBER", "1000", None, None, (), "milliseconds", False, "not yet"),
        "umq_ulb_events": Option("MASK", "0", None, None, (), "mask", False, "not yet"),
        "umq_ulb_flight_size": Option("NUMBER", "1000", None, None, (), "messages", False, "not yet"),
        "umq_ulb_flight_size_behavior": Option("ENUM", "Block", None, None, ("Block", "Notify"), "", False, "not yet"),
        "umq_ulb_receiver_events": Option("LIST_ULB_TYPE_VALUE", "", None, None, (), "", False, "not yet"),
        "umq_ulb_receiver_portion": Option("LIST_ULB_TYPE_VALUE", "", None, None, (), "", False, "not yet"),
        "umq_ulb_receiver_priority": Option("LIST_ULB_TYPE_VALUE", "", None, None, (), "", False, "not yet"),
        "use_extended_reclaim_notifications": Option("SWITCH", "1", None, None, (), "", False, "not yet"),
        "use_hotlink": Option("SWITCH", "0", None, None, (), "", False, "not yet"),
    },
    "receiver": {
        "channel_map_tablesz": Option("NUMBER", "10273", None, None, (), "", False, "yes"),
        "delivery_control_loss_check_interval": Option("NUMBER", "0", None, None, (), "milliseconds", False, "yes"),
        "delivery_control_loss_tablesz": Option("NUMBER", "131", None, None, (), "table entries", False, "no effect"),
        "delivery_control_maximum_burst_loss": Option("NUMBER", "1024", 2, None, (), "fragments", False, "yes"),
        "delivery_control_order_tablesz": Option("NUMBER", "131", None, None, (), "table entries", False, "no effect"),
        "hf_duplicate_delivery": Option("SWITCH", "0", None, None, (), "", False, "yes"),
        "hf_optional_messages": Option("SWITCH", "1", None, None, (), "", False, "yes"),
        "late_join_info_request_interval": Option("NUMBER", "1000", 1, None, (), "milliseconds", False, "yes"),
        "late_join_info_request_maximum": Option("NUMBER", "60", 1, None, (), "", False, "yes"),
        "message_selector": Option("STRING", "NULL", None, None, (), "", False, "not yet"),
        "monitor_interval": Option("NUMBER", "0", None, None, (), "seconds", False, "yes"),
        "null_channel_behavior": Option("ENUM", "deliver", None, None, ("deliver", "discard"), "", False, "yes"),
        "onload_acceleration_stack_name": Option("STRING", "NULL", None, None, (), "", False, "yes"),
        "ordered_delivery": Option("NUMBER", "1", None, None, ("1", "-1", "0"), "", False, "yes"),
        "otr_message_caching_threshold": Option("NUMBER", "10000", None, None, (), "messages", False, "yes"),
        "otr_request_duration": Option("NUMBER", "20000", None, None, (), "milliseconds", False, "no effect"),
        "otr_request_initial_delay": Option("NUMBER", "2000", None, None, (), "milliseconds", False, "yes"),
        "otr_request_log_alert_cooldown": Option("NUMBER", "300", None, None, (), "seconds", False, "yes"),
        "otr_request_maximum_interval": Option("NUMBER", "10000", None, None, (), "milliseconds", False, "yes"),
        "otr_request_message_timeout": Option("NUMBER", "60000", None, None, (), "milliseconds", False, "yes"),
        "otr_request_minimum_interval": Option("NUMBER", "1000", None, None, (), "milliseconds", False, "yes"),
        "otr_request_outstanding_maximum": Option("NUMBER", "200", None, None, (), "messages", False, "yes"),
        "rcv_sync_cache_timeout": Option("NUMBER", "2000", None, None, (), "milliseconds", False, "no effect"),
        "resolution_no_source_notification_threshold": Option("NUMBER", "0", None, None, (), "queries", True, "yes"),
        "resolution_number_of_sources_query_threshold": Option("NUMBER", "10000000", None, None, (), "sources", True, "yes"),
        "resolver_query_maximum_initial_interval": Option("NUMBER", "200", 0, None, (), "milliseconds", False, "yes"),
        "resolver_query_minimum_initial_duration": Option("NUMBER", "5000", None, None, (), "milliseconds", False, "yes"),
        "resolver_query_minimum_initial_interval": Option("NUMBER", "20", 0, None, (), "milliseconds", False, "yes"),
        "resolver_query_minimum_sustain_duration": Option("NUMBER", "60", None, None, (), "seconds", False, "yes"),
        "resolver_query_sustain_interval": Option("NUMBER", "1000", 0, None, (), "milliseconds", False, "yes"),
        "retransmit_initial_sequence_number_request": Option("SWITCH", "1", None, None, (), "", False, "yes"),
        "retransmit_message_caching_proximity": Option("NUMBER", "5000", 0, None, (), "messages", False, "yes"),
        "retransmit_request_generation_interval": Option("NUMBER", "10000", None, None, (), "milliseconds", False, "no effect"),
        "retransmit_request_interval": Option("NUMBER", "500", None, None, (), "milliseconds", False, "yes"),
        "retransmit_request_maximum": Option("NUMBER", "0", None, None, (), "messages", False, "yes"),
        "retransmit_request_message_timeout": Option("NUMBER", "10000", 1, None, (), "milliseconds", False, "yes"),
        "retransmit_request_outstanding_maximum": Option("NUMBER", "10", 1, None, (), "messages", False, "yes"),
        "transport_demux_tablesz": Option("NUMBER", "1", 1, None, (), "", False, "no effect"),
        "transport_lbtipc_acknowledgement_interval": Option("NUMBER", "500", None, None, (), "milliseconds", False, "no effect"),
        "transport_lbtipc_activity_timeout": Option("NUMBER", "60000", None, None, (), "milliseconds", False, "yes"),
        "transport_lbtipc_dro_loss_recovery_timeout": Option("NUMBER", "0", None, None, (), "milliseconds", False, "yes"),
        "transport_lbtrm_activity_timeout": Option("NUMBER", "60000", None, None, (), "milliseconds", False, "yes"),
        "transport_lbtrm_nak_backoff_interval": Option("NUMBER", "200", None, None, (), "milliseconds", False, "yes"),
        "transport_lbtrm_nak_generation_interval": Option("NUMBER", "10000", 5, None, (), "milliseconds", False, "yes"),
        "transport_lbtrm_nak_initial_backoff_interval": Option("NUMBER", "50", None, None, (), "milliseconds", False, "yes"),
        "transport_lbtrm_nak_suppress_interval": Option("NUMBER", "1000", None, None, (), "milliseconds", False, "yes"),
        "transport_lbtrm_preactivity_timeout": Option("NUMBER", "0", None, None, (), "milliseconds", False, "yes"),
        "transport_lbtrm_send_naks": Option("SWITCH", "1", None, None, (), "", False, "yes"),
        "transport_lbtru_acknowledgement_interval": Option("NUMBER", "500", None, None, (), "milliseconds", False, "yes"),
        "transport_lbtru_activity_timeout": Option("NUMBER", "60000", None, None, (), "milliseconds", False, "yes"),
        "transport_lbtru_connect_interval": Option("NUMBER", "100", None, None, (), "milliseconds", False, "yes"),
        "transport_lbtru_interface": Option("INTERFACE", "0.0.0.0", None, None, (), "", False, "yes"),
        "transport_lbtru_maximum_connect_attempts": Option("NUMBER", "600", None, None, (), "", False, "yes"),
        "transport_lbtru_nak_backoff_interval": Option("NUMBER", "200", None, None, (), "milliseconds", False, "yes"),
        "transport_lbtru_nak_generation_interval": Option("NUMBER", "10000", 5, None, (), "milliseconds", False, "yes"),
        "transport_lbtru_nak_initial_backoff_interval": Option("NUMBER", "0", None, None, (), "milliseconds", False, "yes"),
        "transport_lbtru_nak_suppress_interval": Option("NUMBER", "1000", None, None, (), "milliseconds", False, "yes"),
        "transport_lbtru_port_high": Option("PORT", "14379", None, None, (), "", False, "yes"),
        "transport_lbtru_port_low": Option("PORT", "14360", None, None, (), "", False, "yes"),
        "transport_lbtru_send_naks": Option("SWITCH", "1", None, None, (), "", False, "yes"),
        "transport_lbtsmx_activity_timeout": Option("NUMBER", "60000", None, None, (), "milliseconds", False, "yes"),
        "transport_tcp_activity_method": Option("ENUM", "timer", None, None, ("timer", "SO_KEEPALIVE"), "", False, "yes"),
        "transport_tcp_activity_timeout": Option("NUMBER", "0", 0, None, ("0", "3.."), "milliseconds", False, "yes"),
        "transport_tcp_dro_loss_recovery_timeout": Option("NUMBER", "0", None, None, (), "milliseconds", False, "not yet"),
        "transport_tcp_interface": Option("INTERFACE", "0.0.0.0", None, None, (), "", False, "yes"),
        "transport_topic_sequence_number_info_request_interval": Option("NUMBER", "1000", 1, None, (), "milliseconds", False, "yes"),
        "transport_topic_sequence_number_info_request_maximum": Option("NUMBER", "60", 1, None, (), "", False, "yes"),
        "um_reassembly_maximum_size": Option("NUMBER", "268435456", 1, None, (), "bytes", False, "yes"),
        "um_transport_lbtrm_nak_backoff_interval_us": Option("NUMBER", "0", 0, 3600000000, (), "microseconds", False, "yes"),
        "um_transport_lbtrm_nak_generation_interval_us": Option("NUMBER", "0", 0, 3600000000, ("0", "1000.."), "microseconds", False, "yes"),
        "um_transport_lbtrm_nak_initial_backoff_interval_us": Option("NUMBER", "0", 0, 3600000000, (), "microseconds", False, "yes"),
        "um_transport_lbtrm_nak_suppress_interval_us": Option("NUMBER", "0", 0, 3600000000, (), "microseconds", False, "yes"),
        "um_transport_lbtru_nak_backoff_interval_us": Option("NUMBER", "0", 0, 3600000000, (), "microseconds", False, "yes"),
        "um_transport_lbtru_nak_generation_interval_us": Option("NUMBER", "0", 0, 3600000000, ("0", "1000.."), "microseconds", False, "yes"),
        "um_transport_lbtru_nak_initial_backoff_interval_us": Option("NUMBER", "0", 0, 3600000000, (), "microseconds", False, "yes"),
        "um_transport_lbtru_nak_suppress_interval_us": Option("NUMBER", "0", 0, 3600000000, (), "microseconds", False, "yes"),
        "ume_activity_timeout": Option("NUMBER", "0", None, None, (), "milliseconds", False, "not yet"),
        "ume_allow_confirmed_delivery": Option("SWITCH", "1", None, None, (), "", False, "not yet"),
        "ume_application_outstanding_maximum": Option("NUMBER", "0", None, None, (), "fragments", False, "not yet"),
        "ume_consensus_sequence_number_behavior": Option("ENUM", "majority", None, None, ("lowest", "majority", "highest"), "", False, "not yet"),
        "ume_explicit_ack_only": Option("SWITCH", "0", None, None, (), "", False, "not yet"),
        "ume_receiver_paced_persistence": Option("NUMBER", "0", None, None, ("0", "1", "2"), "", False, "not yet"),
        "ume_registration_interval": Option("NUMBER", "3000", None, None, (), "milliseconds", False, "not yet"),
        "ume_retransmit_request_generation_interval": Option("NUMBER", "10000", None, None, (), "milliseconds", False, "no effect"),
        "ume_retransmit_request_interval": Option("NUMBER", "500", None, None, (), "milliseconds", False, "yes"),
        "ume_retransmit_request_maximum": Option("NUMBER", "0", None, None, (), "messages", False, "yes"),
        "ume_retransmit_request_outstanding_maximum": Option("NUMBER", "10", 1, None, (), "messages", False, "yes"),
        "ume_session_id": Option("SESSION_ID", "0", 0, None, (), "", False, "not yet"),
        "ume_sri_request_interval": Option("NUMBER", "1000", 1, None, (), "milliseconds", False, "not yet"),
        "ume_sri_request_maximum": Option("NUMBER", "60", 1, None, (), "", False, "not yet"),
        "ume_state_lifetime": Option("NUMBER", "0", None, None, (), "milliseconds", False, "not yet"),
        "ume_use_ack_batching": Option("SWITCH", "1", None, None, (), "", False, "not yet"),
        "ume_use_late_join": Option("SWITCH", "1", None, None, (), "", False, "yes"),
        "ume_use_store": Option("SWITCH", "1", None, None, (), "", False, "not yet"),
        "umq_delayed_consumption_report_interval": Option("NUMBER", "0", None, None, (), "milliseconds", False, "not yet"),
        "umq_hold_interval": Option("NUMBER", "10000", None, None, (), "milliseconds", False, "not yet"),
        "umq_index_assignment_eligibility_default": Option("ENUM", "Eligible", None, None, ("Eligible", "Ineligible"), "", False, "not yet"),
        "umq_queue_participation": Option("NUMBER", "1", None, None, ("0", "1", "2"), "", False, "not yet"),
        "umq_receiver_type_id": Option("NUMBER", "0", None, None, (), "identifier", False, "not yet"),
        "umq_retransmit_request_interval": Option("NUMBER", "500", None, None, (), "milliseconds", False, "not yet"),
        "umq_retransmit_request_outstanding_maximum": Option("NUMBER", "100", None, None, (), "messages", False, "not yet"),
        "umq_ulb_source_activity_timeout": Option("NUMBER", "10000", None, None, (), "milliseconds", False, "not yet"),
        "umq_ulb_source_check_interval": Option("NUMBER", "1000", None, None, (), "milliseconds", False, "not yet"),
        "unrecognized_channel_behavior": Option("ENUM", "deliver", None, None, ("deliver", "discard"), "", False, "yes"),
        "use_hotlink": Option("SWITCH", "0", None, None, (), "", False, "not yet"),
        "use_late_join": Option("SWITCH", "1", None, None, (), "", False, "yes"),
        "use_otr": Option("NUMBER", "2", None, None, ("0", "1", "2"), "", False, "yes"),
        "use_transport_thread": Option("SWITCH", "0", None, None, (), "", False, "no effect"),
    },
    "wildcard_receiver": {
        "hf_receiver": Option("SWITCH", "0", None, None, (), "", False, "yes"),
        "monitor_interval": Option("NUMBER", "0", None, None, (), "seconds", False, "yes"),
        "pattern_type": Option("ENUM", "pcre", None, None, ("pcre", "regex", "appcb"), "", False, "yes"),
        "resolver_no_source_linger_timeout": Option("NUMBER", "1000", None, None, (), "milliseconds", False, "yes"),
        "resolver_query_max_interval": Option("NUMBER", "0", None, None, (), "milliseconds", False, "no effect"),
        "resolver_query_maximum_interval": Option("NUMBER", "1000", 0, None, (), "milliseconds", False, "yes"),
        "resolver_query_minimum_duration": Option("NUMBER", "60", None, None, (), "seconds", False, "yes"),
        "resolver_query_minimum_interval": Option("NUMBER", "50", 0, None, (), "milliseconds", False, "yes"),
    },
    "event_queue": {
        "event_queue_name": Option("STRING", "", None, None, (), "", False, "yes"),
        "monitor_appid": Option("STRING", "", None, None, (), "", False, "yes"),
        "monitor_format": Option("ENUM", "csv", None, None, ("csv", "pb"), "", False, "yes"),
        "monitor_format_opts": Option("STRING", "", None, None, (), "", False, "yes"),
        "monitor_interval": Option("NUMBER", "0", None, None, (), "seconds", False, "yes"),
        "monitor_transport": Option("ENUM", "lbm", None, None, ("lbm", "lbmsnmp"), "", False, "yes"),
        "monitor_transport_opts": Option("STRING", "", None, None, (), "", False, "yes"),
        "queue_age_enabled": Option("SWITCH", "0", None, None, (), "", True, "yes"),
        "queue_cancellation_callbacks_enabled": Option("SWITCH", "0", None, None, (), "", False, "yes"),
        "queue_count_enabled": Option("SWITCH", "0", None, None, (), "", True, "yes"),
        "queue_delay_warning": Option("NUMBER", "0", None, None, (), "microseconds", True, "yes"),
        "queue_enqueue_notification": Option("SWITCH", "0", None, None, (), "", True, "yes"),
        "queue_objects_purged_on_close": Option("SWITCH", "1", None, None, (), "", False, "yes"),
        "queue_service_time_enabled": Option("SWITCH", "0", None, None, (), "", True, "yes"),
        "queue_size_warning": Option("NUMBER", "0", None, None, (), "events", True, "yes"),
    },
}
