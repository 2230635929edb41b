// Makes a server that names no address listen on loopback only: `node --require loopback.cjs SERVER`.

const { Server } = require('node:net');

const listen = Server.prototype.listen;
Server.prototype.listen = function (...given) {
  const [port, next] = given;
  const names = typeof port === 'object' || typeof next === 'string';
  return listen.apply(this, names ? given : [port, '127.0.0.1', ...given.slice(1)]);
};
