/** libum public header umestored_main.h */
#ifndef LBM_UMESTORED_MAIN_H_INCLUDED
#define LBM_UMESTORED_MAIN_H_INCLUDED

#ifdef __cplusplus
extern "C" {
#endif

#ifndef UMEStoreExpDLL
#define UMEStoreExpDLL
#endif

UMEStoreExpDLL int umestored_main(int argc, char **argv);
UMEStoreExpDLL void umestored_main_shutdown(void);

#ifdef __cplusplus
}
#endif

#endif
