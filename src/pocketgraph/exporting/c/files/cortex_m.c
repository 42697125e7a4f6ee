/* Start-up of a Cortex-M7 for `make cortex-m`, without a board's own: vectors, floating point, memory. Files,
   output and the way out are the debugger's (semihosting), which newlib's librdimon calls. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

extern char stack_top[], data_load[], data_begin[], data_end[], bss_begin[], bss_end[];
extern void initialise_monitor_handles(void);
extern int main(int count, char **words);

/* Enables the coprocessors 10 and 11, which are the floating point unit, before any function uses one. */
__attribute__((naked, noreturn)) static void reset(void) {
    __asm__ volatile(
        "ldr r0, =0xE000ED88\n"
        "ldr r1, [r0]\n"
        "orr r1, r1, #0xF00000\n"
        "str r1, [r0]\n"
        "dsb\n"
        "isb\n"
        "b start\n"
        ".ltorg\n");
}

__attribute__((used, noreturn)) void start(void) {
    static char name[] = "@name@_test";
    char *words[] = {name, 0};
    memcpy(data_begin, data_load, (size_t)(data_end - data_begin));
    memset(bss_begin, 0, (size_t)(bss_end - bss_begin));
    initialise_monitor_handles();
    exit(main(1, words));
}

/* SYS_EXIT_EXTENDED, with ADP_Stopped_ApplicationExit and a code that is not 0. */
__attribute__((noreturn)) static void fault(void) {
    static const uint32_t reason[2] = {0x20026, 3};
    register uint32_t call __asm__("r0") = 0x20;
    register const uint32_t *block __asm__("r1") = reason;
    for (;;) __asm__ volatile("bkpt 0xAB" : "+r"(call) : "r"(block) : "memory");
}

__attribute__((section(".vectors"), used)) static void *const vectors[] = {
    stack_top, reset, fault, fault, fault, fault, fault, 0, 0, 0, 0, fault, fault, 0, fault, fault};
