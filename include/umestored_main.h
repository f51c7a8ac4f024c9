/** umestored_main.h - the persistent store as a function, for programs that run it inside their own process. */
#ifndef LBM_UMESTORED_MAIN_H_INCLUDED
#define LBM_UMESTORED_MAIN_H_INCLUDED

#ifdef __cplusplus
extern "C" {
#endif

#ifndef UMEStoreExpDLL
#define UMEStoreExpDLL
#endif

/** Starts the store with the arguments of its command line. */
UMEStoreExpDLL int umestored_main(int argc, char **argv);

/** Stops it. */
UMEStoreExpDLL void umestored_main_shutdown(void);

#ifdef __cplusplus
}
#endif

#endif
