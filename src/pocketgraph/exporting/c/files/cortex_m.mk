
# Builds the test for a Cortex-M7 and runs it in qemu: gcc-arm-none-eabi, libnewlib-arm-none-eabi, qemu-system-arm
ARM_CC ?= arm-none-eabi-gcc
CORTEX_M = -mcpu=cortex-m7 -mthumb -mfloat-abi=hard -mfpu=fpv5-sp-d16
ON_BOARD = qemu-system-arm -M mps2-an500 -nographic -monitor none -serial none \
           -semihosting-config enable=on,target=native -kernel

build/cortex-m/@name@_test: $(SOURCES) @name@_cortex_m.c @name@_cortex_m.ld @name@.h @name@_common.h
	mkdir -p $(@D)
	$(ARM_CC) $(CORTEX_M) -O2 -std=c99 -Wall -Wextra -nostartfiles --specs=rdimon.specs -ffunction-sections \
	    -Wl,--gc-sections -T @name@_cortex_m.ld $(SOURCES) @name@_cortex_m.c -lm -o $@

cortex-m: build/cortex-m/@name@_test
	timeout 600 $(ON_BOARD) $<

.PHONY: cortex-m
