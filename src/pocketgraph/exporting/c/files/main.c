/* Runs the model on files and shows what comes out.

       @name@_main [-o OUTPUT] [-n RUNS] [-w FILE.weights] INPUT...

   One INPUT for each input of the model: a picture (.ppm with three channels, .pgm with one; binary, 8 bits) where it
   takes one, of any size; else its elements as they lie in memory, little-endian. -o writes all outputs, one after
   another, as they lie in memory. -n runs the model so many times and prints the mean time. */
#include "@name@_common.h"

#include <math.h>
#include <time.h>

/* How a picture's values from 0 to 255 are fed: (value - mean) / deviation. */
static const float mean[] = {@mean@}, deviation[] = {@deviation@};
static const int normalized_channels = @normalized_channels@;
static const int classes = @classes@; /* names of them; 0: unknown */
static const char *const class_names[] = {@class_names@0};

static int read_number(FILE *file) {
    int value = 0, letter = fgetc(file);
    while (letter == '#' || letter == ' ' || letter == '\n' || letter == '\t' || letter == '\r') {
        while (letter == '#' && (letter = fgetc(file)) != '\n' && letter != EOF) letter = '#';
        letter = fgetc(file);
    }
    for (; letter >= '0' && letter <= '9' && value < 100000; letter = fgetc(file)) value = 10 * value + letter - '0';
    return value;
}

static void put(const @name@_tensor *about, void *to, size_t at, float value) {
    float code = about->scale != 0 ? rintf(value / about->scale) + (float)about->zero_point : value;
    if (about->type == @NAME@_FLOAT) {
        ((float *)to)[at] = value;
    } else if (about->type == @NAME@_INT8) {
        ((int8_t *)to)[at] = (int8_t)(code < -128 ? -128 : code > 127 ? 127 : code);
    } else {
        ((uint8_t *)to)[at] = (uint8_t)(code < 0 ? 0 : code > 255 ? 255 : code);
    }
}

/* Each pixel of the input is the mean of the rectangle of the picture that it covers. */
static int read_picture(const char *path, const @name@_tensor *about, void *to) {
    FILE *file = fopen(path, "rb");
    const int channels = about->rank == 4 ? about->shape[3] : 0;
    const int letter = file && fgetc(file) == 'P' ? fgetc(file) : 0;
    int width = 0, height = 0, most = 0, done = 0;
    unsigned char *pixels = 0;
    if (letter == (channels == 3 ? '6' : '5') && (channels == 3 || channels == 1)) {
        width = read_number(file);
        height = read_number(file);
        most = read_number(file);
    }
    if (width > 0 && height > 0 && most == 255 && (size_t)width * (size_t)height < ((size_t)1 << 28) &&
        (about->type == @NAME@_FLOAT || about->type == @NAME@_INT8 || about->type == @NAME@_UINT8)) {
        const size_t bytes = (size_t)width * (size_t)height * (size_t)channels;
        pixels = malloc(bytes);
        done = pixels && fread(pixels, 1, bytes, file) == bytes;
    }
    if (file) fclose(file);
    if (!done) fprintf(stderr, "%s: not a binary %s of 8 bits\n", path, channels == 1 ? ".pgm" : ".ppm");
    for (int y = 0; done && y < about->shape[1]; y++)
        for (int x = 0; x < about->shape[2]; x++)
            for (int c = 0; c < channels; c++) {
                const int rows = about->shape[1], columns = about->shape[2];
                const int top = (int)((long long)y * height / rows), left = (int)((long long)x * width / columns);
                int bottom = (int)((long long)(y + 1) * height / rows);
                int right = (int)((long long)(x + 1) * width / columns);
                float sum = 0;
                const int n = normalized_channels > 1 ? c % normalized_channels : 0;
                if (bottom <= top) bottom = top + 1;
                if (right <= left) right = left + 1;
                for (int i = top; i < bottom; i++)
                    for (int j = left; j < right; j++) sum += pixels[((size_t)i * (size_t)width + (size_t)j) * (size_t)channels + (size_t)c];
                sum /= (float)(bottom - top) * (float)(right - left);
                put(about, to, ((size_t)y * (size_t)columns + (size_t)x) * (size_t)channels + (size_t)c,
                    (sum - mean[n]) / deviation[n]);
            }
    free(pixels);
    return done;
}

static int is_picture(const char *path) {
    const size_t length = strlen(path);
    return length > 4 && (strcmp(path + length - 4, ".ppm") == 0 || strcmp(path + length - 4, ".pgm") == 0);
}

static float score(const @name@_tensor *about, const void *from, size_t at) {
    const float scale = about->scale != 0 ? about->scale : 1;
    switch (about->type) {
        case @NAME@_FLOAT: return ((const float *)from)[at];
        case @NAME@_INT8: return scale * (float)(((const int8_t *)from)[at] - about->zero_point);
        case @NAME@_UINT8:
        case @NAME@_BOOL: return scale * (float)(((const uint8_t *)from)[at] - about->zero_point);
        case @NAME@_INT32: return (float)((const int32_t *)from)[at];
        case @NAME@_INT64: return (float)((const int64_t *)from)[at];
        default: return 0;
    }
}

static void show(const @name@_tensor *about, const void *from) {
    size_t count = 1;
    float below = INFINITY;
    size_t last = 0;
    for (int d = 0; d < about->rank; d++) count *= (size_t)about->shape[d];
    printf("%s, %lu elements\n", about->name, (unsigned long)count);
    for (size_t rank = 0; rank < 5 && rank < count; rank++) { /* the largest one that has not been shown */
        size_t best = count;
        for (size_t i = 0; i < count; i++) {
            const float value = score(about, from, i);
            const int is_left = rank == 0 || value < below || (value == below && i > last);
            if (is_left && (best == count || value > score(about, from, best))) best = i;
        }
        if (best == count) break;
        below = score(about, from, best);
        last = best;
        if (best < (size_t)classes)
            printf("%12g  %s\n", (double)below, class_names[best]);
        else
            printf("%12g  [%lu]\n", (double)below, (unsigned long)best);
    }
}

int main(int count, char **words) {
    const char *output = 0, *weights_path = "@name@.weights";
    int runs = 1, given = 0, done = 1;
    void *memory = 0;
    @name@ it = {0};
    clock_t begun;
    const char *inputs[@NAME@_INPUTS + 1] = {0};
    for (int i = 1; i < count; i++) {
        if (words[i][0] == '-' && words[i][1] && !words[i][2] && i + 1 < count && strchr("onw", words[i][1])) {
            const char *word = words[++i];
            if (words[i - 1][1] == 'o') output = word;
            if (words[i - 1][1] == 'n') runs = atoi(word);
            if (words[i - 1][1] == 'w') weights_path = word;
        } else if (given < @NAME@_INPUTS) {
            inputs[given++] = words[i];
        } else {
            given = -1;
            break;
        }
    }
    (void)weights_path;
    if (given != @NAME@_INPUTS) {
        fprintf(stderr, "%s [-o OUTPUT] [-n RUNS] [-w FILE.weights] and %d inputs\n", words[0], @NAME@_INPUTS);
        return 2;
    }
    if (!set_up(&it, &memory, weights_path)) return 1;
    for (int i = 0; done && i < given; i++) {
        const @name@_tensor *about = &@name@_inputs[i];
        done = is_picture(inputs[i]) ? read_picture(inputs[i], about, @name@_input(&it, i))
                                     : read_file(inputs[i], @name@_input(&it, i), about->bytes);
    }
    if (done) {
        FILE *file = output ? fopen(output, "wb") : 0;
        begun = clock();
        for (int i = 0; i < runs; i++) @name@_invoke(&it);
        if (runs > 1)
            printf("%.6f ms a run\n", 1000.0 * (double)(clock() - begun) / (double)CLOCKS_PER_SEC / (double)runs);
        for (int i = 0; i < @NAME@_OUTPUTS; i++) {
            const @name@_tensor *about = &@name@_outputs[i];
            if (file) done = done && fwrite(@name@_output(&it, i), 1, about->bytes, file) == about->bytes;
            if (!output) show(about, @name@_output(&it, i));
        }
        if (file) done = fclose(file) == 0 && done;
        if (output && (!file || !done)) {
            fprintf(stderr, "%s cannot be written\n", output);
            done = 0;
        }
    }
    @name@_release(&it);
    free(memory);
    return done ? 0 : 1;
}
