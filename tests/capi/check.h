/* CHECK ends the program with 1, and says where, if a condition does not hold. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                   \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);      \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

#endif
