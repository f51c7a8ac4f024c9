/* Objects do not survive fork: the child's copies have no threads. Each object
 * keeps the generation it was made in; the child's generation differs. */
#ifndef UM_CORE_FORK_H
#define UM_CORE_FORK_H

/* Registers the handler on first use. Any thread. */
unsigned um_fork_generation(void);

#endif
