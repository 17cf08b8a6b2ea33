/**
 * The command line: a class a command, their common options, and how a run tells what it does, what failed and how to go
 * on.
 */
package org.sparkfp4.jobs;
