/* Deliberate loss: the rates of the process and the draw. See um_loss_rate.h. */
#include "transport/session/um_loss_rate.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/um_log.h"
#include "base/um_random.h"

atomic_int um_loss_rates[UM_LOSS_KINDS];

void um_loss_rate_set(enum um_loss_kind kind, int percent)
{
    percent = percent < 0 ? 0 : percent > 100 ? 100 : percent;
    atomic_store_explicit(&um_loss_rates[kind], percent, memory_order_relaxed);
}

bool um_loss_drawn(int percent)
{
    static _Thread_local struct um_rng rng;
    static _Thread_local bool seeded;
    if (!seeded) {
        uint64_t seed;
        um_random_bytes(&seed, sizeof seed);
        um_rng_seed(&rng, seed);
        seeded = true;
    }
    return um_rng_range(&rng, 1, 100) <= (uint64_t)percent;
}

static void read_environment(void)
{
    static const char *const names[UM_LOSS_KINDS] = {[UM_LOSS_LBTRM_RCV] = "LBTRM_LOSS_RATE",
                                                     [UM_LOSS_LBTRM_SRC] = "LBTRM_SRC_LOSS_RATE",
                                                     [UM_LOSS_LBTRU_RCV] = "LBTRU_LOSS_RATE",
                                                     [UM_LOSS_LBTRU_SRC] = "LBTRU_SRC_LOSS_RATE",
                                                     [UM_LOSS_UIM] = "LBM_UIM_LOSS_RATE"};
    for (int kind = 0; kind < UM_LOSS_KINDS; kind++) {
        const char *text = getenv(names[kind]);
        char *end;
        long percent = text != NULL ? strtol(text, &end, 10) : 0;
        if (text == NULL || *text == '\0') {
            continue;
        }
        if (*end != '\0' || percent < 0 || percent > 100) {
            um_log(UM_LOG_WARNING, "Core-9006-14", "environment variable %s \"%s\": must be 0..100 (percent): ignored",
                   names[kind], text);
        } else if (atomic_load_explicit(&um_loss_rates[kind], memory_order_relaxed) == 0) {
            um_loss_rate_set(kind, (int)percent);
        }
    }
}

void um_loss_rate_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_environment);
}
