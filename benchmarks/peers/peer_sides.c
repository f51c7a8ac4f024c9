/* See peer_sides.h. */
#include "peer_sides.h"

#include <string.h>

static struct {
    const struct peer *peer;
    void *side;
    int role;
    /* ping-pong, role 0 */
    uint64_t begin_ns, sent_ns, sequence;
    char message[65536];
} run;

static void send_message(uint64_t sequence, enum bench_kind kind)
{
    struct bench_header header = {sequence, kind};
    memcpy(run.message, &header, sizeof header);
    run.peer->send(run.side, run.message, bench_options.size);
}

/* Until the other side says that it hears: discovery takes its time. */
static void greet(atomic_int *heard)
{
    while (!atomic_load(heard) && !bench_finished()) {
        send_message(0, BENCH_HELLO);
        run.peer->flush(run.side);
        bench_sleep_ms(5);
    }
}

static void send_for(double seconds, enum bench_kind kind, uint64_t *sequence)
{
    uint64_t end = bench_now() + (uint64_t)(seconds * 1e9);
    while (bench_now() < end && !bench_finished()) {
        for (int i = 0; i < 64; i++) {
            send_message((*sequence)++, kind);
        }
    }
}

static void publish(void)
{
    uint64_t sequence = 0;
    greet(&bench_shared->seen_b);
    send_for(bench_options.warm_seconds, BENCH_WARM, &sequence);
    send_for(bench_options.seconds, BENCH_MEASURED, &sequence);
    bench_shared->sent = sequence;
    while (!bench_finished()) {
        send_message(sequence, BENCH_END);
        run.peer->flush(run.side);
        bench_sleep_ms(5);
    }
}

static void ping(void)
{
    run.sent_ns = bench_now();
    send_message(++run.sequence, BENCH_MEASURED);
    run.peer->flush(run.side);
}

static void on_pong(const void *data)
{
    struct bench_header header;
    memcpy(&header, data, sizeof header);
    if (header.kind == BENCH_HELLO) {
        atomic_store(&bench_shared->seen_a, 1);
        return;
    }
    uint64_t now = bench_now();
    if (header.sequence != run.sequence) {
        return;
    }
    if (now - run.begin_ns > (uint64_t)(bench_options.warm_seconds * 1e9) &&
        bench_shared->sample_count < BENCH_SAMPLES_MAX) {
        bench_shared->samples[bench_shared->sample_count++] = (uint32_t)(now - run.sent_ns);
    }
    if (now - run.begin_ns > (uint64_t)((bench_options.warm_seconds + bench_options.seconds) * 1e9)) {
        atomic_store(&bench_shared->done, 1);
        return;
    }
    ping();
}

static void on_ping(const void *data)
{
    struct bench_header header;
    memcpy(&header, data, sizeof header);
    if (header.kind == BENCH_HELLO) {
        atomic_store(&bench_shared->seen_b, 1);
        return;
    }
    run.peer->send(run.side, data, bench_options.size);
    run.peer->flush(run.side);
}

static void ping_pong(void)
{
    void (*on_message)(const void *) = run.role == 0 ? on_pong : on_ping;
    while (!(atomic_load(&bench_shared->seen_a) && atomic_load(&bench_shared->seen_b)) && !bench_finished()) {
        send_message(0, BENCH_HELLO);
        run.peer->flush(run.side);
        run.peer->poll(run.side, on_message, 5);
    }
    bench_meet();
    if (run.role == 0) {
        run.begin_ns = bench_now();
        ping();
    }
    while (!bench_finished()) {
        run.peer->poll(run.side, on_message, 20);
    }
}

void peer_run(const struct peer *peer, int role)
{
    bool both = strcmp(bench_options.mode, "pingpong") == 0;
    run.peer = peer;
    run.role = role;
    run.side = peer->open(role, both);
    bench_meet();
    if (both) {
        ping_pong();
    } else if (role == 0) {
        publish();
    } else {
        while (!bench_finished()) {
            peer->poll(run.side, bench_oneway_message, 20);
        }
    }
}
