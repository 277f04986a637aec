/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes script and data, runs gnuplot, cleans and keeps the picture.
 */
#include "plots/render.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/output.h"
#include "plots/drawing.h"
#include "plots/gnuplot.h"
#include "plots/text.h"

#define MAX_PICTURE ((long)1 << 28)

/* One file beside the picture, which only --keep makes visible. */
struct side {
    char *path, *temporary, *name;       /* its final path, where it is until then, and as the script calls it; owned */
    moesim_output *output;
};

static moesim_code open_side(const char *picture, const char *ending, struct side *s, moesim_error *err)
{
    const size_t bytes = strlen(picture) + strlen(ending) + 1;
    s->path = malloc(bytes);
    if (s->path == NULL)
        return moesim_fail_nomem(err, "a file name", bytes);
    (void)snprintf(s->path, bytes, "%s%s", picture, ending);
    const moesim_code code = moesim_output_open(s->path, &s->output, err);
    if (code != MOESIM_OK)
        return code;
    const char *slash = strrchr(s->path, '/');
    s->name = moesim_text_path(slash != NULL ? slash + 1 : s->path);
    s->temporary = moesim_text_path(moesim_output_temporary(s->output));
    return s->name != NULL && s->temporary != NULL ? MOESIM_OK : moesim_fail_nomem(err, "a file name", bytes);
}

static void close_side(struct side *s)
{
    moesim_output_discard(&s->output);
    free(s->path);
    free(s->temporary);
    free(s->name);
}

/* gnuplot reads it next. */
static moesim_code flush_side(const struct side *s, moesim_error *err)
{
    FILE *stream = moesim_output_stream(s->output);
    errno = 0;
    return fflush(stream) == 0 && ferror(stream) == 0 ? MOESIM_OK
        : moesim_fail(err, MOESIM_E_IO, "cannot write '%s': %s; nothing was kept", s->path,
                      errno != 0 ? strerror(errno) : "an earlier write failed");
}

/* ---- the picture ---------------------------------------------------------------------------------------------------- */

static const char *find(const char *data, size_t bytes, const char *words)
{
    return memmem(data, bytes, words, strlen(words));
}

/* SVG says which gnuplot drew it: cut out. Returns what is left. */
static size_t clean_svg(char *data, size_t bytes)
{
    const char *begin = find(data, bytes, "<desc>");
    const char *end = begin != NULL ? find(begin, bytes - (size_t)(begin - data), "</desc>\n") : NULL;
    if (end == NULL)
        return bytes;
    end += strlen("</desc>\n");
    const size_t head = (size_t)(begin - data), tail = bytes - (size_t)(end - data);
    memmove(data + head, end, tail);
    return head + tail;
}

/* PDF says when: written over in place, since offsets count. */
static size_t clean_pdf(char *data, size_t bytes)
{
    static const char key[] = "/CreationDate (D:", epoch[] = "19700101000000";
    const char *at = find(data, bytes, key);
    const size_t date = at != NULL ? (size_t)(at - data) + strlen(key) : bytes;
    for (size_t i = 0; i < strlen(epoch) && date + i < bytes && isdigit((unsigned char)data[date + i]); i++)
        data[date + i] = epoch[i];
    return bytes;
}

static moesim_code load(FILE *drawn, char **data, size_t *bytes, moesim_error *err)
{
    void *memory = NULL;
    const long end = fseek(drawn, 0, SEEK_END) == 0 ? ftell(drawn) : -1;
    if (end <= 0 || end > MAX_PICTURE)
        return moesim_fail(err, MOESIM_E_IO, "gnuplot drew %ld bytes, which is no picture; nothing was kept", end);
    const moesim_code code = moesim_alloc((size_t)end, 1, "a picture", &memory, err);
    *data = memory;
    *bytes = (size_t)end;
    rewind(drawn);
    if (code == MOESIM_OK && fread(*data, 1, *bytes, drawn) != *bytes)
        return moesim_fail(err, MOESIM_E_IO, "cannot read back what gnuplot drew");
    return code;
}

static moesim_code copy_picture(FILE *drawn, const char *terminal, FILE *out, moesim_error *err)
{
    char *data = NULL;
    size_t bytes = 0;
    const moesim_code code = load(drawn, &data, &bytes, err);
    if (code == MOESIM_OK && strcmp(terminal, "svg") == 0)
        bytes = clean_svg(data, bytes);
    if (code == MOESIM_OK && strcmp(terminal, "pdfcairo") == 0)
        bytes = clean_pdf(data, bytes);
    if (code == MOESIM_OK)
        (void)fwrite(data, 1, bytes, out);   /* the commit checks the stream */
    free(data);
    return code;
}

static moesim_code draw(const moesim_gnuplot *g, const char *terminal, const struct side side[2], FILE *out, moesim_error *err)
{
    FILE *drawn = tmpfile();
    if (drawn == NULL)
        return moesim_fail(err, MOESIM_E_IO, "cannot make a temporary file: %s", strerror(errno));
    moesim_code code = moesim_gnuplot_run(g, side[0].temporary, side[1].temporary, drawn, err);
    if (code == MOESIM_OK)
        code = copy_picture(drawn, terminal, out, err);
    (void)fclose(drawn);
    return code;
}

static moesim_code write_sides(const moesim_chart *chart, const char *template_name, const char *terminal, double width_mm,
                               const char *path, const struct side side[2], moesim_error *err)
{
    const char *slash = strrchr(path, '/');
    char *name = moesim_text_path(slash != NULL ? slash + 1 : path);
    if (name == NULL)
        return moesim_fail_nomem(err, "a file name", strlen(path));
    const moesim_drawing d = { template_name, terminal, width_mm, side[1].name, name };
    moesim_code code = moesim_drawing_script(&d, chart, moesim_output_stream(side[0].output), err);
    if (code == MOESIM_OK)
        moesim_drawing_data(chart, moesim_output_stream(side[1].output));
    free(name);
    for (size_t i = 0; i < 2 && code == MOESIM_OK; i++)
        code = flush_side(&side[i], err);
    return code;
}

moesim_code moesim_plot_render(const moesim_chart *chart, const char *template_name, double width_mm, const char *path,
                               bool keep, moesim_error *err)
{
    static moesim_gnuplot gnuplot;
    const char *terminal = NULL;
    struct side side[2] = { { NULL, NULL, NULL, NULL }, { NULL, NULL, NULL, NULL } };
    moesim_output *picture = NULL;
    moesim_code code = moesim_gnuplot_find(&gnuplot, err);
    if (code == MOESIM_OK)
        code = moesim_gnuplot_terminal(&gnuplot, path, &terminal, err);
    if (code == MOESIM_OK)
        code = moesim_output_open(path, &picture, err);
    if (code == MOESIM_OK)
        code = open_side(path, ".gp", &side[0], err);
    if (code == MOESIM_OK)
        code = open_side(path, ".dat", &side[1], err);
    if (code == MOESIM_OK)
        code = write_sides(chart, template_name, terminal, width_mm, path, side, err);
    if (code == MOESIM_OK)
        code = draw(&gnuplot, terminal, side, moesim_output_stream(picture), err);
    for (size_t i = 0; i < 2 && keep && code == MOESIM_OK; i++)
        code = moesim_output_commit(&side[i].output, err);
    if (code == MOESIM_OK)
        code = moesim_output_commit(&picture, err);
    moesim_output_discard(&picture);
    close_side(&side[0]);
    close_side(&side[1]);
    return code;
}
