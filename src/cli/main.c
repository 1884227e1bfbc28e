/* main.c - the commands of the program, and which of them is asked for. */
#include "cli/cli.h"

#include <stdio.h>

static const cli_command *const commands[] = {&cli_run, &cli_chat, &cli_bench, &cli_perplexity, &cli_info, &cli_check, &cli_tokenize, &cli_detokenize, &cli_template, &cli_logits};

static void print_commands(FILE *out)
{
    fprintf(out, "pinch %s: runs large language models on small machines\n\n", PINCH_VERSION);
    fprintf(out, "usage: pinch COMMAND -m FILE [options]\n\n");
    for (size_t i = 0; i < PN_COUNT(commands); i++) fprintf(out, "  %-12s %s\n", commands[i]->name, commands[i]->summary);
    fprintf(out, "\npinch COMMAND --help lists a command's options and shows examples; pinch --version prints the version.\n");
}

static const cli_command *find_command(const char *name)
{
    for (size_t i = 0; i < PN_COUNT(commands); i++) {
        if (!strcmp(commands[i]->name, name)) return commands[i];
    }
    return NULL;
}

static int unknown_command(const char *name)
{
    const char *names[PN_COUNT(commands)];
    for (size_t i = 0; i < PN_COUNT(commands); i++) names[i] = commands[i]->name;
    const char *nearest = cli_nearest(name, names, PN_COUNT(names));
    const cli_settings none = {0};
    if (nearest) return cli_misuse(&none, "unknown command %s; did you mean %s?", name, nearest);
    return cli_misuse(&none, "unknown command %s (pinch --help lists all)", name);
}

static int run_command(const cli_command *command, int argc, char **argv)
{
    cli_settings settings = cli_settings_default();
    settings.command = command->name;
    int status = CLI_MISUSED;
    if (cli_parse(command, argc, argv, &settings)) {
        if (settings.help) cli_help(command);
        status = settings.help ? cli_flush(&settings) : command->run(&settings);
    }
    cli_settings_free(&settings);
    return status;
}

int main(int argc, char **argv)
{
    cli_catch_signals();
    if (argc < 2) {
        print_commands(stderr);
        return CLI_MISUSED;
    }
    const char *word = argv[1];
    const cli_settings none = {0};
    if (!strcmp(word, "--version")) {
        cli_print("pinch %s\n", PINCH_VERSION);
        return cli_flush(&none);
    }
    if (!strcmp(word, "-h") || !strcmp(word, "--help") || (!strcmp(word, "help") && argc < 3)) {
        print_commands(stdout);
        return cli_flush(&none);
    }
    const bool help = !strcmp(word, "help");
    const cli_command *command = find_command(help ? argv[2] : word);
    if (!command) return unknown_command(help ? argv[2] : word);
    if (help) {
        cli_help(command);
        return cli_flush(&none);
    }
    return run_command(command, argc - 2, argv + 2);
}
