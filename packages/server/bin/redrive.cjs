#!/usr/bin/env node
// The first file that runs. It is written in old JavaScript, so that a Node that is too old can say so: what it loads
// then is new, and would fail there with an error about its syntax.
'use strict';

var fs = require('fs');
var path = require('path');

var needed = require('../package.json').engines.node.replace('>=', '');
if (isOlder(process.versions.node, needed)) {
  process.stderr.write(
    'redrive needs Node ' +
      needed +
      ' or later; this is Node ' +
      process.versions.node +
      '. Install a newer Node, from https://nodejs.org or with a version manager. (NODE_TOO_OLD)\n',
  );
  process.exitCode = 1;
} else {
  // In the checkout nothing is built.
  var isSource = fs.existsSync(path.join(__dirname, '..', 'src', 'cli', 'main.ts'));
  import(isSource ? '../src/cli/main.ts' : '../dist/cli/main.js').catch(function (error) {
    process.stderr.write(String((error && error.stack) || error) + '\n');
    process.exitCode = 1;
  });
}

function isOlder(version, than) {
  var have = version.split('.').map(Number);
  var want = than.split('.').map(Number);
  for (var i = 0; i < want.length; i++) {
    if (have[i] !== want[i]) return have[i] < want[i];
  }
  return false;
}
