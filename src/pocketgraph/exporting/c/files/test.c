/* Feeds inputs whose outputs are known, and compares: @name@_test [FOLDER], golden by default. */
#include "@name@_common.h"

#include <math.h>

static const double tolerance = 1e-4; /* of the largest element, for floats; codes and whole numbers must be equal */
static const double noise = @noise@; /* of the signal, where floats are rounded to codes on the way: each may round otherwise */

static int unproven; /* an output of which most is NaN or infinite says nothing */

/* Whether what differs is not more than the noise of roundings. */
static int within_noise(const @name@_tensor *about, const void *wanted, const void *given) {
    const int is_float = about->type == @NAME@_FLOAT;
    double signal = 0, off = 0;
    if (noise <= 0 || (!is_float && about->type != @NAME@_INT8)) return 0;
    for (size_t i = 0; i < about->bytes / (is_float ? sizeof(float) : 1); i++) {
        const double a = is_float ? (double)((const float *)wanted)[i] : (double)((const int8_t *)wanted)[i] - about->zero_point;
        const double b = is_float ? (double)((const float *)given)[i] : (double)((const int8_t *)given)[i] - about->zero_point;
        signal += a * a;
        off += (a - b) * (a - b);
    }
    printf("%s: noise %g of the signal, from what was rounded on the way\n", about->name, sqrt(off / signal));
    return sqrt(off) <= noise * sqrt(signal);
}

static int compare(const @name@_tensor *about, const void *wanted, const void *given) {
    if (about->type == @NAME@_FLOAT) {
        const float *a = wanted, *b = given;
        double peak = 0, most = 0;
        size_t finite = 0, count = about->bytes / sizeof(float);
        for (size_t i = 0; i < count; i++) {
            finite += isfinite(a[i]) != 0;
            const double off = fabs((double)a[i] - (double)b[i]);
            const int same = a[i] == b[i] || (isnan(a[i]) && isnan(b[i]));
            if (isfinite(a[i]) && fabs((double)a[i]) > peak) peak = fabs((double)a[i]);
            if (!same && !(off <= most)) most = isfinite(off) ? off : INFINITY;
        }
        printf("%s: largest difference %g, largest element %g\n", about->name, most, peak);
        if (2 * finite < count) {
            unproven = 1;
            printf("%s: not proven, most of what it must give is NaN or infinite\n", about->name);
        }
        return most <= tolerance * (peak > 0 ? peak : 1) || within_noise(about, wanted, given);
    }
    if (memcmp(wanted, given, about->bytes) == 0) {
        printf("%s: equal\n", about->name);
        return 1;
    }
    printf("%s: not equal\n", about->name);
    return within_noise(about, wanted, given);
}

int main(int count, char **words) {
    const char *folder = count > 1 ? words[1] : "golden";
    char path[4096];
    void *memory = 0;
    @name@ it = {0};
    int done = set_up(&it, &memory, "@name@.weights");
    for (int run = 0; run < 2; run++) { /* twice, since nothing may be left over from the first time */
        for (int i = 0; done && i < @NAME@_INPUTS; i++) {
            snprintf(path, sizeof path, "%s/input_%d.bin", folder, i);
            done = read_file(path, @name@_input(&it, i), @name@_inputs[i].bytes);
        }
        if (done) @name@_invoke(&it);
        for (int i = 0; done && i < @NAME@_OUTPUTS; i++) {
            void *wanted = malloc(@name@_outputs[i].bytes + 1);
            snprintf(path, sizeof path, "%s/output_%d.bin", folder, i);
            done = wanted && read_file(path, wanted, @name@_outputs[i].bytes) &&
                   compare(&@name@_outputs[i], wanted, @name@_output(&it, i));
            free(wanted);
        }
    }
    @name@_release(&it);
    free(memory);
    puts(!done ? "FAILED" : unproven ? "NOT PROVEN" : "passed");
    return done ? 0 : 1;
}
